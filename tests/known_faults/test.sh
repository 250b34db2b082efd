#!/bin/sh
# Known faults on the command line: test.sh AIT FOLDER-OF-THIS DATA
set -u
ait=$1 here=$2 data=$3
work=$(mktemp -d "${TMPDIR:-/tmp}/ait-faults.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
bad=0
digits=$data/models/digits/digits.pt2 images=$data/models/digits/digits-test.npz

complain() {
  echo "FAILED: $*"
  sed 's/^/  | /' out 2>/dev/null | head -20
  bad=1
}
# check CODE TEXT COMMAND…: exit code, and a basic regular expression in what it prints ("" takes anything).
check() {
  code=$1 text=$2
  shift 2
  "$@" >out 2>&1 </dev/null
  got=$?
  { [ $got -eq "$code" ] && { [ -z "$text" ] || grep -q -- "$text" out; }; } || complain "($got, want $code; '$text'): $*"
}

# the cases, on every backend: none fails
for backend in reference native eager; do
  check 0 ' 0 failed' "$ait" verify --cases "$here" --backend $backend -q
done

# R14: all that is missing is said at once
printf 'graph "g" raw\ninput %%x: float32[2] user 0 "x"\n%%a: float32[2] = custom "one::a"(%%x)\n%%b: float32[2] = custom "two::b"(%%a)\n%%c: float32[2] = custom "two::b"(%%b)\noutput user 0 "y" = %%c\n' >custom.txt
check 1 'one::a  *1 ' "$ait" ops --missing custom.txt
check 1 'two::b  *2 ' "$ait" ops --missing custom.txt
check 3 "'one::a' is not registered; all that is missing: 'one::a' (1 node, first 'a'), 'two::b' (2 nodes, first 'b')" "$ait" run custom.txt --random 1
check 3 '^hint: .*--plugin' "$ait" tune custom.txt --random 1 --record none -o never.ait
[ ! -e never.ait ] || complain "a file was left"

# R21: the backend that was asked for, or an error
check 3 "no backend 'nonesuch'" "$ait" run "$digits" -i "$images" --backend nonesuch
check 0 ' on eager' "$ait" run "$digits" -i "$images" --backend eager

# R24: few processors, many threads: it starts, and the answers are the same bits
for threads in 1 2 3 64; do
  check 0 '' "$ait" run "$digits" -i "$images" --backend native --threads $threads -o "t$threads.npz"
  cmp -s t1.npz "t$threads.npz" || complain "another answer with $threads threads"
done
if command -v taskset >/dev/null; then
  check 0 '' taskset -c 0 "$ait" run "$digits" -i "$images" --backend native --threads 8 -o one.npz
  cmp -s t1.npz one.npz || complain "another answer on one processor"
fi

# S26: no instruction above the level; the same answers within the tolerance
for level in scalar avx2 native; do
  check 0 '' "$ait" run "$digits" -i "$images" --backend native --isa $level -o "isa.npz"
  check 0 ' ok' "$ait" verify "$digits" -i "$images" --expect isa.npz --backend native
done

# every fault of the cases has its line in the README
sed -n 's/.*"tags": \["\([RS][0-9]*\)"\].*/\1/p' "$here/cases.json" | sort -u >faults
while read -r fault; do
  grep -q "$fault" "$here/README.md" || complain "README.md has no line for $fault"
done <faults
[ -s faults ] || complain "no faults in cases.json"
exit $bad
