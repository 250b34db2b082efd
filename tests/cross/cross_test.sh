#!/bin/sh
# Files tuned on this machine, run by a libait-rt for another one: cross_test.sh AIT RUN_MODEL EMULATOR DATA. Answers must be within the tolerance
# that the tuner found for this model, which the file's report holds.
set -u
ait=$1 run_model=$2 emulator=$3 data=$4
work=$(mktemp -d "${TMPDIR:-/tmp}/ait-cross.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
bad=0

fail() {
  echo "FAILED: $*"
  bad=1
}

# tolerance FILE: the largest atol of its report
tolerance() { "$ait" report "$1" --json | tr ',{' '\n\n' | sed -n 's/.*"atol": *\([0-9.eE+-]*\).*/\1/p' | sort -g | tail -1; }

# foreign FILE INPUTS EXPECTED PLAN BACKEND
foreign() {
  "$emulator" "$run_model" "$1" "$2" "$3" 0 "$(tolerance "$1")" >out 2>&1 || { cat out; fail "$1: answers differ"; }
  grep -q "on $4: $5\$" out || { cat out; fail "$1 does not run on $4: $5"; }
  sed 's/^/  /' out
}

digits=$data/models/digits rows=$data/models/rows/rows.onnx
tune() { "$ait" tune "$@" --budget 1s --record none -q --strategy one-backend --backends native >/dev/null 2>&1 || fail "tune $*"; }

tune "$digits/digits.pt2" --data "$digits/digits-test.npz" --batch 16 -o digits.ait
tune "$digits/digits.pt2" --data "$digits/digits-test.npz" --batch 16 --isa scalar -o digits-scalar.ait
foreign digits.ait "$digits/digits-test.npz" "$digits/expected.npz" portable reference       # the plan needs what this machine lacks
foreign digits-scalar.ait "$digits/digits-test.npz" "$digits/expected.npz" scalar native     # the same kernels, compiled for the other machine

tune "$rows" --random 1 --size batch=4 --isa scalar --buckets batch=1,9 -o rows.ait
tune "$rows" --data "$data/models/rows/nine.npz" --isa scalar -o nine.ait
foreign nine.ait "$data/models/rows/nine.npz" "$data/models/rows/nine-expected.npz" scalar native
foreign rows.ait "$data/models/rows/nine.npz" "$data/models/rows/nine-expected.npz" scalar native

[ $bad -eq 0 ] && echo "cross: passed"
exit $bad
