#!/bin/bash
# onnx_cases_test.sh AIT DATA [FOLDER]: every case of ONNX's node tests must pass on the reference, but for those that
# DATA/onnx/expected_failures.txt names with a reason; one that is named there and passes is a failure, too. FOLDER: all cases; without it the sample.
set -u
ait=$1 data=$2/onnx folder=${3:-$2/onnx/node}
out=$(mktemp)
trap 'rm -f "$out"' EXIT
"$ait" verify --cases "$folder" --backend reference --quiet --json="$out" > /dev/null 2>&1
[ -s "$out" ] || { echo "no result from ait verify"; exit 1; }
grep -q '"passed":0,' "$out" && { echo "no case passed"; exit 1; }
# name and outcome of each case
result=$(tr -d '\n' < "$out" | grep -o '"name":"[^"]*", *"outcome":"[^"]*"' | sed 's/"name":"\([^"]*\)", *"outcome":"\([^"]*\)"/\1 \2/')
bad=0
while read -r name outcome; do
  if grep -q "^$name " "$data/expected_failures.txt"; then
    [ "$outcome" = passed ] && { echo "$name passes: take it off expected_failures.txt"; bad=1; }
  elif [ "$outcome" != passed ]; then
    echo "$name $outcome"
    bad=1
  fi
done <<< "$result"
while read -r name reason; do
  case $name in ''|'#'*) continue ;; esac
  [ -n "$reason" ] || { echo "$name has no reason"; bad=1; }
done < "$data/expected_failures.txt"
exit $bad
