#!/bin/sh
# check_symbols.sh LIBAIT-RT.SO LIBAIT.SO OBJECT-FOLDER INCLUDE-FOLDER: libait-rt holds nothing of import, ir, passes, tune and export
# (whose objects lie in OBJECT-FOLDER); the libraries export what the public headers declare with AIT_API, and nothing else.
set -eu
rt=$1 full=$2 objects=$3 include=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

names() { awk 'NF >= 3 { sub(/@.*/, "", $3); print $3 }' | sort -u; }
complain() {
  if [ -s "$2" ]; then
    echo "$1:" >&2
    sed 's/^/  /' "$2" >&2
    bad=1
  fi
}

# An object whose source is gone is left from an older tree.
find "$objects" -name '*.o' | while read -r object; do
  source=${object#"$objects"/}
  if [ -f "$include/../${source%.o}" ]; then echo "$object"; fi
done >"$work/objects"
xargs nm -g --defined-only <"$work/objects" | names | grep '^ait_' >"$work/above"
nm --defined-only "$rt" | names >"$work/rt"
if [ ! -s "$work/above" ] || ! grep -q '^ait_session_run$' "$work/rt"; then
  echo "check_symbols: the libraries have no symbol tables to look into" >&2
  exit 2
fi
comm -12 "$work/above" "$work/rt" >"$work/found"
complain "libait-rt holds symbols of the rooms above the neck" "$work/found"
nm "$rt" | grep -oE '(onnx__|protobuf_c_)[a-z0-9_]*' | sort -u >"$work/found" || true
complain "libait-rt holds ONNX's schema or needs protobuf-c" "$work/found"

sed -n '/^ *#/d; s/^AIT_API.*[ *]\(ait_[a-z0-9_]*\)(.*/\1/p' "$include"/ait/*.h | sort -u >"$work/declared"
for library in "$rt" "$full"; do
  nm -D --defined-only "$library" | names | grep -v -e '^_init$' -e '^_fini$' -e '^__' >"$work/exported" || true
  comm -13 "$work/declared" "$work/exported" >"$work/found"
  complain "$(basename "$library") exports what no public header declares" "$work/found"
done
comm -23 "$work/declared" "$work/exported" >"$work/found" # of the full library, the last one
complain "public headers declare what libait does not export" "$work/found"
exit $bad
