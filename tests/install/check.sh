#!/bin/sh
# check.sh CMAKE BUILD-FOLDER LIBDIR CC [CXX]: installs, then uses the installation as an application would: headers alone as C and C++,
# a program against each library through pkg-config, and the program after the whole tree has been moved.
set -eu
cmake=$1 build=$2 libdir=$3 cc=$4 cxx=${5:-}
here=$(cd "$(dirname "$0")" && pwd)
work=$build/install-test
rm -rf "$work"
mkdir -p "$work"
"$cmake" --install "$build" --prefix "$work/first" >"$work/log"
mv "$work/first" "$work/moved"
root=$work/moved

for header in "$root"/include/ait/*.h; do
  name=ait/$(basename "$header")
  printf '#include <%s>\n#include <%s>\nint unused_symbol;\n' "$name" "$name" >"$work/one.c"
  "$cc" -std=c11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I"$root/include" "$work/one.c"
  if [ -n "$cxx" ]; then
    "$cxx" -x c++ -std=c++17 -Wall -Wextra -Werror -fsyntax-only -I"$root/include" "$work/one.c"
  fi
done

export PKG_CONFIG_PATH="$root/$libdir/pkgconfig"
for package in ait ait-rt; do
  # shellcheck disable=SC2046,SC2086
  "$cc" ${CFLAGS:-} -Wall -Werror "$here/version.c" -o "$work/$package" $(pkg-config --cflags --libs $package)
  got=$(LD_LIBRARY_PATH="$root/$libdir" "$work/$package")
  want=$(pkg-config --modversion $package)
  if [ "$got" != "$want" ]; then
    echo "$package says version $got, pkg-config $want" >&2
    exit 1
  fi
done
if [ -x "$root/bin/ait" ]; then
  "$root/bin/ait" --version
fi
echo ok
