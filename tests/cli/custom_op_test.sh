#!/bin/sh
# A model with a custom operator: custom_op_test.sh AIT APP PLUGIN DATA BACKEND-PLUGIN SCALE-PLUGIN. The application and the plugin are examples/custom_op.
set -u
ait=$1 app=$2 plugin=$3 model=$4/pt2/golden/cust_t214.pt2
work=$(mktemp -d "${TMPDIR:-/tmp}/ait-custom.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
bad=0

# check CODE TEXT COMMAND…: exit code, and a basic regular expression in what it prints ("" takes anything).
check() {
  code=$1 text=$2
  shift 2
  "$@" >out 2>&1 </dev/null
  got=$?
  if [ $got -ne "$code" ] || { [ -n "$text" ] && ! grep -q -- "$text" out; }; then
    echo "FAILED ($got, want $code; '$text'): $*"
    sed 's/^/  | /' out
    bad=1
  fi
}

# x * 2 + (x + 1) of 1, 2, 4
for backend in reference native eager; do
  check 0 '^13$' "$app" "$model" $backend
done
# the same operator in a decomposed program: auto_functionalized_v2, on a buffer and on a slice of a tensor
functional=$4/pt2/golden/afunc_t213.pt2
for backend in reference native eager; do
  check 0 '^42$' "$app" "$functional" $backend
done
check 3 "'mylib.foo' (2 nodes, first 'auto_functionalized_v2')" "$ait" run "$functional" --random 1

check 3 "node 'foo': custom operator 'mylib.foo' is not registered" "$ait" run "$model" --random 1
check 3 '^hint: .*--plugin' "$ait" run "$model" --random 1
check 1 'mylib.foo' "$ait" ops --missing "$model"
check 0 'nothing is missing' "$ait" ops --missing "$model" --plugin "$plugin"
check 0 'mylib::foo' "$ait" ops --plugin "$plugin"
check 0 '' "$ait" run "$model" --random 1 --plugin "$plugin" -o want.npz
for backend in native eager reference; do
  check 0 '' "$ait" run "$model" --random 1 --plugin "$plugin" --backend $backend -o got.npz
  check 0 '' cmp want.npz got.npz
done
check 0 'custom "mylib.foo"(%x, %x, 2.0)' "$ait" opt "$model" --passes core --plugin "$plugin"
check 0 '' "$ait" inspect "$model" --plugin "$plugin"
check 0 op-not-in-native "$ait" explain "$model" --plugin "$plugin"
check 0 'winner' "$ait" tune "$model" --random 1 --budget 3 --record none --plugin "$plugin" --plugin "$plugin" -o tuned.ait
check 0 '' "$ait" run tuned.ait --random 1 --plugin "$plugin" -o got.npz
check 0 '' cmp want.npz got.npz
check 3 "custom operator 'mylib.foo' is not registered" "$ait" run tuned.ait --random 1
check 3 '^hint: .*ait_custom_op_add' "$ait" run tuned.ait --random 1
check 0 '^13$' "$app" tuned.ait
check 3 "no plugin 'absent.so'" "$ait" ops --plugin absent.so
echo text >text.so
check 4 "cannot load plugin 'text.so'" "$ait" ops --plugin text.so
# an operator of a custom domain in an ONNX model: 2 * relu(3 x + 1)
scale=$4/onnx/custom_scale.onnx
check 3 "operator 'Scale' of 'testlib'" "$ait" run "$scale" --random 1
check 1 'testlib::Scale  *2 .*a custom operator that is not registered' "$ait" ops --missing "$scale"
check 0 'nothing is missing' "$ait" ops --missing "$scale" --plugin "$6"
for backend in reference native; do
  check 0 '' "$ait" run "$scale" --random 1 --plugin "$6" --backend $backend -o "scale.$backend.npz"
done
check 0 '' cmp scale.reference.npz scale.native.npz
check 0 'custom "testlib::Scale"(%x, 3.0, \[1.0\])' "$ait" opt "$scale" --plugin "$6"
check 0 'winner' "$ait" tune "$scale" --random 1 --budget 2 --record none --plugin "$6" -o scale.ait

# a backend from a plugin
check 0 'never  *yes  *7 ' "$ait" backends --plugin "$5"
check 3 "backend 'never' does not take this model: it takes nothing" "$ait" run "$4/models/digits/digits.pt2" --random 1 --plugin "$5" --backend never
exit $bad
