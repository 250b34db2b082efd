#!/bin/sh
# Golden tests of the command line: what the page of commands promises, on the bundled models.
#   cli_test.sh AIT DATA PART     PART: usage, models, debug, tune, strategies, faults, keys, ship
set -u
ait=$1
data=$2
part=$3
digits=$data/models/digits/digits.pt2
images=$data/models/digits/digits-test.npz
expected=$data/models/digits/expected.npz
other=$data/pt2/golden/mlp_t29.pt2
work=$(mktemp -d "${TMPDIR:-/tmp}/ait-cli.XXXXXX") || exit 1
cd "$work" || exit 1
trap 'rm -rf "$work"' EXIT
XDG_CACHE_HOME=$work/cache
XDG_CONFIG_HOME=$work/config
export XDG_CACHE_HOME XDG_CONFIG_HOME
failures=0

fail() {
  failures=$((failures + 1))
  echo "FAILED: $*"
  sed 's/^/  out| /' out 2>/dev/null | head -20
  sed 's/^/  err| /' err 2>/dev/null | head -20
}

# expect CODE ARGUMENTS…: runs ait, keeps out and err.
expect() {
  want=$1
  shift
  "$ait" "$@" >out 2>err </dev/null
  got=$?
  [ $got -eq "$want" ] || fail "exit code $got, want $want: ait $*"
}
# says FILE TEXT: a basic regular expression in out or err.
says() { grep -q -- "$2" "$1" || fail "'$2' is not in $1"; }
lacks() { grep -q -- "$2" "$1" && fail "'$2' is in $1"; }
# The form of an error: "ait: …" first, then the hint, nothing on standard output.
error_form() {
  head -1 err | grep -q '^ait: ' || fail "no 'ait: ' in front"
  [ "$(grep -c '^ait: ' err)" = 1 ] || fail "more than one line of error"
  [ "$(wc -l <err)" -le 2 ] || fail "more than error and hint"
  [ -s out ] && fail "an error prints to standard output, too"
}
hinted() { sed -n 2p err | grep -q '^hint: ' || fail "no hint"; }
narrow() { awk 'length($0) > 80 { bad = 1 } END { exit bad }' "$1" || fail "wider than 80 columns: $(awk 'length($0) > 80' "$1" | head -1)"; }
# A document is JSON: brackets in balance outside strings, begins and ends as an object or list.
json() {
  awk '{ s = s $0 } END { gsub(/\\./, "", s); gsub(/"[^"]*"/, "0", s); o = gsub(/[{]/, "", s) - gsub(/[}]/, "", s); l = gsub(/\[/, "", s) - gsub(/\]/, "", s); exit o != 0 || l != 0 }' "$1" &&
    head -c 1 "$1" | grep -q '[[{]' || fail "$1 is no JSON"
}

usage_part() {
  expect 2
  says err 'usage: ait COMMAND'
  expect 0 help
  narrow out
  says out 'Exit codes: 0 done, 1 the answer is no'
  for c in $(sed -n 's/^  \([a-z]*\) .*/\1/p' out); do
    expect 0 help "$c"
    narrow out
    says out "^usage: ait $c"
    cp out by-help
    expect 0 "$c" --help
    cmp -s out by-help || fail "ait $c --help and ait help $c differ"
  done
  expect 0 --version
  says out '^ait [0-9]*\.[0-9]*\.[0-9]*$'
  expect 2 tunes m.pt2
  error_form
  says err "did you mean 'ait tune'"
  expect 2 xyzzy
  error_form
  hinted
  expect 2 help xyzzy
  error_form
  expect 2 run m.pt2 --thread 2
  error_form
  says err "did you mean '--threads'"
  expect 2 run m.pt2 --theads=2
  says err "did you mean '--threads'"
  expect 2 run m.pt2 -Z
  error_form
  hinted
  for bad in '--threads x' '--threads=-1' '--threads=2x' '--repeat=1e3' '--random -3' '--profile=yes' '--threads' '--threads=1 --threads=2'; do
    # shellcheck disable=SC2086
    expect 2 run m.pt2 $bad
    error_form
    hinted
  done
  for bad in '--budget=x' '--budget=-1' '--budget=inf' '--budget=nan' '--tolerance=5' '--batch=0'; do
    expect 2 tune m.pt2 -o x.ait $bad
    error_form
  done
  expect 2 run
  error_form
  hinted
  expect 2 run a b
  expect 2 tune m.pt2
  expect 2 verify
  expect 2 verify m.pt2
  expect 2 verify m.pt2 --cases .
  expect 2 opt
  expect 0 backends
  narrow out
  says out '^native .*yes'
  says out '^null'
  expect 0 backends -v
  narrow out
  expect 0 backends --json
  json out
  expect 0 ops
  says out 'operators, .* run on the reference'
  expect 0 ops --json
  json out
  expect 0 opt --list
  narrow out
  says out 'functionalise'
}

models_part() {
  expect 0 inspect "$digits"
  says err 'measuring what this machine can do'
  narrow out
  says out 'float32 \[s40, 1, 8, 8\]'
  expect 0 inspect "$digits" --json
  json out
  cp out first
  expect 0 inspect "$digits" --json=file.json
  [ -s out ] && fail "--json=FILE prints, too"
  cmp -s first file.json || fail "--json and --json=FILE differ"
  # what bounds it: measured once, then from the cache folder; times of modules where there are inputs
  ls cache/ait/roofline-*-1.json >/dev/null || fail "the roofline was not kept"
  expect 0 inspect "$digits"
  lacks err 'measuring'
  narrow out
  says out '^bound by '
  says out 'middle .* 55.0% *arithmetic'
  says out '^native .*11/11 *100%'
  expect 0 inspect "$digits" --no-roofline
  lacks out '^bound by '
  expect 0 inspect "$digits" -d "$images"
  narrow out
  says out '(root) .* [mun]*s  *100.0%'
  expect 2 inspect "$digits" --threads=0
  echo '{"broken' >"$(ls cache/ait/roofline-*-1.json)"
  expect 0 inspect "$digits"
  says err 'measuring'
  expect 0 explain "$digits"
  narrow out
  says out '^dimension'
  says out 'image: dimension 1 is fixed at 1'
  expect 0 explain "$digits" image
  expect 0 explain "$digits" middle
  says out 'nothing was declined there'
  expect 3 explain "$digits" nosuch
  error_form
  hinted
  expect 0 explain "$digits" --json
  json out
  expect 0 opt "$digits"
  says out '^graph '
  cp out raw
  expect 0 opt "$digits" --passes core -o core.txt
  [ -s out ] && fail "-o prints, too"
  says core.txt ' conv('
  lacks core.txt '= batch_norm('
  expect 3 opt "$digits" --passes nosuch
  error_form
  hinted
  expect 0 ops --missing "$digits"
  expect 0 run "$digits" -i "$images" -o out.npz
  expect 0 verify "$digits" -i "$images" --expect out.npz --rtol 0 --atol 0
  expect 0 verify "$digits" -i "$images" --expect "$expected"
  says out 'ok$'
  expect 0 verify "$digits" -i "$images" --expect "$expected" --backend native --json
  json out
  says out '"pass": *true'
  expect 0 run "$digits" --random 1 -o other.npz --size s40=450
  expect 1 verify "$digits" -i "$images" --expect other.npz
  says out 'DIFFERS'
  [ -s err ] && fail "the answer no is no error"
  expect 1 verify "$digits" -i "$images" --expect other.npz --json
  says out '"pass": *false'
  expect 0 run "$digits" -i "$images" --labels label
  says out '447 of 450'
  expect 0 run "$digits" --random 1 --repeat 3 --profile --threads 2 --backend native
  expect 0 run "$digits" --random 1 --json
  json out
  # bad models and data
  expect 3 run nosuch.pt2 --random 1
  error_form
  says err "nosuch.pt2"
  echo text >text.pt2
  expect 3 run text.pt2 --random 1
  error_form
  says err "text.pt2"
  for command in inspect explain opt 'ops --missing' 'tune -o x.ait --random 1' bench report; do
    # shellcheck disable=SC2086
    expect 3 $command text.pt2
    error_form
    says err "text.pt2"
  done
  expect 3 run "$digits" -i text.pt2
  error_form
  says err "text.pt2"
  expect 3 run "$digits" -i "$expected" # no such input
  error_form
  says err "image"
  expect 3 run "$digits" --random 1 --size s40=5000
  error_form
  expect 3 run "$digits" --random 1 --size s40
  error_form
  hinted
  expect 3 run "$digits" --random 1 --size s4=5
  error_form
  hinted
  expect 3 run "$digits" --random 1 --size s40=9999999999999999999
  error_form
  expect 3 run "$digits" --random 1 --backend nosuch
  error_form
  hinted
  expect 3 run "$digits" --random 1 --backend native --knobs nosuch=1
  error_form
  hinted
  expect 3 run "$digits"
  error_form
  hinted
  expect 3 report "$digits"
  error_form
  expect 3 verify --cases nosuch-folder
  error_form
  expect 0 bench "$digits" --backend eager,native --min-time 0.05
  narrow out
  expect 0 bench "$digits" --backend eager,native --min-time 0.05 --json
  json out
  says out 'time_over_first_low'
}

debug_part() {
  expect 0 run "$digits" --backend native -i "$images" --repeat 3 --trace trace.json
  json trace.json
  says trace.json '"traceEvents"'
  says trace.json '"name":"call 3"'
  says trace.json '"name":"middle.1","cat":"module","ph":"X"'
  says trace.json '"name":"conv","cat":"step"'
  lacks out 'operator'
  expect 4 run "$digits" --backend native -i "$images" --trace no/such/trace.json
  error_lines=$(grep -c '^ait: ' err)
  [ "$error_lines" = 1 ] || fail "a trace that cannot be written is no single error"
  expect 0 debug "$digits" --backend native -i "$images"
  says out 'native agrees'
  expect 1 debug "$digits" --backend null --size s40=3 -o found
  narrow out
  says out '^module  stem.1'
  says out '= conv -> float32 \[3, 32, 8, 8\]'
  says out '^worst element'
  # the reproducer is a model like others
  expect 1 verify found.txt -i found.npz --backend null --expect found.expected.npz
  expect 0 verify found.txt -i found.npz --backend native --expect found.expected.npz
  expect 0 opt found.txt
  expect 1 debug "$digits" --backend null --json
  json out
  says out '"cause": *"node"'
  [ -s ait-debug.txt ] || fail "no reproducer under the default name"
  expect 2 debug "$digits"
  error_form
  expect 2 debug "$digits" --backend null --tolerance 5
  expect 3 debug "$digits" --backend nosuch
  error_form
  hinted
}

tune_part() {
  expect 0 tune "$digits" -d "$images" --batch 16 -o one.ait --budget 2 --threads 1
  narrow out
  says err 'wrote one.ait'
  [ -s cache/ait/record.db ] || fail "no record in the cache folder"
  start=$(date +%s)
  expect 0 tune "$digits" -d "$images" --batch 16 -o two.ait --budget 2 --threads 1 --json=report.json -q
  [ $(($(date +%s) - start)) -le 20 ] || fail "the second run is slow"
  [ -s out ] || fail "--json=FILE hides the table"
  [ -s err ] && fail "-q is not quiet"
  says report.json '"strategy"'
  cmp -s one.ait two.ait || fail "two files from one record differ"
  json report.json
  expect 0 report two.ait
  narrow out
  cp out table
  expect 0 report one.ait --json
  json out
  says out '"winner"'
  expect 0 report one.ait --html page.html
  [ -s out ] && fail "--html prints a table, too"
  says err 'wrote page.html'
  says page.html 'DigitsNet'
  says page.html 'class="roof"'
  says page.html 'native threads=<wbr>1'
  lacks page.html '<script'
  lacks page.html 'https\{0,1\}://'
  cp page.html again.html
  expect 0 report one.ait --html page.html -q
  [ -s err ] && fail "-q is not quiet"
  cmp -s page.html again.html || fail "two pages of one report differ"
  expect 4 report one.ait --html no/such/folder.html
  error_form
  # compare: with itself nothing changes; a slower, larger, less right result is a regression
  expect 0 compare one.ait report.json
  narrow out
  says out '^0 worse, 0 better'
  expect 0 compare one.ait two.ait --json
  json out
  says out '"regressions": *0'
  sed 's/"low_s": *\([0-9.e-]*\)/"low_s": 5/; s/"high_s": *\([0-9.e-]*\)/"high_s": 6/; s/"median_s": *\([0-9.e-]*\)/"median_s": 5.5/' report.json >slow.json
  expect 1 compare report.json slow.json
  narrow out
  says out 'latency of the winner.*worse'
  expect 0 compare slow.json report.json
  says out 'latency of the winner.*better'
  expect 0 compare report.json slow.json --threshold 1e9
  expect 2 compare report.json
  expect 2 compare report.json slow.json --threshold=x
  expect 3 compare "$digits" report.json
  error_form
  hinted
  expect 4 compare none.ait report.json
  error_form
  echo '{"a": 1}' >no.json
  expect 3 compare report.json no.json
  says err 'second is no tuning report'
  expect 0 tune "$digits" -d "$images" --batch 16 -o two.ait --budget 2 --threads 1
  head -n "$(wc -l <out)" table | cmp -s out - || fail "ait tune and ait report print different tables"
  says err '(from the record)'
  # other candidates with the same budget are other work
  expect 0 tune "$digits" -d "$images" --batch 16 -o two.ait --budget 2 --threads 1 --backends native,reference
  says out 'reference threads=1 .*[mun]*s '
  lacks err 'reference threads=1: skipped'
  expect 0 run two.ait -i "$images" --labels label
  says out '447 of 450'
  expect 0 verify two.ait -i "$images" --expect "$expected" --rtol 1e-4 --atol 1e-4
  expect 0 inspect two.ait
  narrow out
  says out 's40 = 1 to 1024'
  expect 0 opt two.ait -o sealed.txt
  expect 0 opt "$digits" -o raw.txt
  grep -v '^module' raw.txt >raw.graph
  grep -v '^module' sealed.txt | cmp -s - raw.graph || fail "the sealed graph is not the imported one"
  expect 0 explain two.ait
  expect 0 bench two.ait "$digits" --min-time 0.05
  narrow out
  # samples in a folder; strategies; a record of its own, or none
  mkdir samples
  "$ait" run "$digits" --random 1 -o /dev/null >/dev/null 2>&1
  cp "$images" samples/a.npz
  cp "$images" samples/b.npz
  expect 0 tune "$digits" -d samples --batch 4 -o three.ait --budget 1 --record none --strategy first-wins --threads 1
  lacks err 'from the record'
  expect 3 tune "$digits" -d samples -o x.ait --strategy nosuch
  error_form
  hinted
  expect 3 tune "$digits" -d samples -o x.ait --backends nosuch
  error_form
  expect 3 tune "$digits" -o x.ait
  error_form
  hinted
  # nothing valid: the answer is no, and the report says why
  expect 1 tune "$digits" -d "$images" --batch 4 -o x.ait --tolerance 1e-30,1e-30 --budget 1 --record none --threads 1 --backends null
  [ -e x.ait ] && fail "a file of nothing valid"
  says out 'wrong'
  says err '^ait: '
}

# with STRATEGY CODE MORE…: tunes into s.ait, the report in s.json; one record for all.
with() {
  strategy=$1
  want=$2
  shift 2
  rm -f s.ait s.json
  expect "$want" tune "$digits" -d "$images" --batch 4 -o s.ait --budget 2 --threads 1 --backends native --record s.db --json=s.json \
    --strategy "$strategy" "$@"
}

strategies_part() {
  # the table: help, errors
  expect 0 help tune
  for s in max-throughput highest-throughput min-latency latency-budget=MS min-memory traffic=TRACE first-wins one-backend; do
    says out "^  $s"
  done
  for s in nosuch latency-budget latency-budget=x min-memory=3 traffic; do
    with $s 3
    error_form
    says err 'hint: .*max-throughput, .*latency-budget=MS.*, min-memory, traffic=TRACE.*, first-wins, one-backend'
    [ -e s.ait ] && fail "$s wrote a file"
  done
  # max-throughput looks for the batch size: within the user's range
  with highest-throughput 0 --batch-sizes 2..8
  narrow out
  says out 'by batch size (s40), native'
  says out '^at batch size [2-8]: '
  json s.json
  says s.json '"strategy": *"max-throughput"'
  says s.json '"largest": *8'
  says s.json '"stopped": *"largest size"'
  lacks s.json '"batch": *1,'
  lacks s.json '"batch": *16,'
  with max-throughput 0 --batch-sizes 1,4 # the second time from the record
  with max-throughput 0 --batch-sizes 1,4
  says err 'from the record'
  lacks err 'sizes tried'
  says s.json '"batch": *4,'
  # bounded by memory: a size that would not fit is refused, not tried
  with max-throughput 0 --memory 4M --batch-sizes 1,1024
  says s.json '"stopped": *"memory"'
  says s.json '"refused_bytes"'
  says s.json '"limit_bytes": *4194304'
  grep -o '"bytes": *[0-9]*' s.json | tr -d '" :a-z' | awk '$1 > 4194304 { bad = 1 } END { exit bad }' || fail "a size beyond the limit was tried"
  with max-throughput 1 --memory 1K
  says err 'no batch size fits'
  [ -e s.ait ] && fail "a file of nothing that fits"
  for b in 0 1.. x 2000..3000; do
    with max-throughput 3 --batch-sizes $b
    error_form
  done
  with min-latency 3 --batch-sizes 1..4
  says err 'looks for no batch size'
  with max-throughput 2 --memory 0
  with max-throughput 2 --memory 5Q
  # latency-budget: something keeps it, or exit 1 with the closest
  with latency-budget=1000 0
  says s.json '"limit_s": *1'
  with latency-budget=0.0001 1
  error_form_with_report
  says err 'nothing meets the latency budget of 0.0001 ms (p95); closest is .* at batch size 1$'
  says out 'nothing meets the latency budget'
  [ -e s.ait ] && fail "a file of nothing that meets the budget"
  # min-memory: nobody needs less
  with min-memory 0
  narrow out
  says out '^beaten in nothing by another'
  says s.json '"memory_bytes"'
  says s.json '"pareto"'
  # one-backend: its own error; first-wins: in the user's order, the baseline included
  expect 4 tune "$digits" -d "$images" --batch 4 -o s.ait --budget 1 --record none --strategy one-backend --backends onnxruntime,native --threads 1
  says err 'onnxruntime'
  with one-backend 0
  says out '^winner: native threads=1'
  expect 0 tune "$digits" -d "$images" --batch 4 -o s.ait --budget 1 --record s.db --strategy first-wins --backends eager,native --threads 1
  says out '^winner: eager threads=1'
  says out 'an earlier candidate was valid'
  # strategies of modules: the module is a part of its own
  with max-throughput 0 --batch-sizes 4 --module-strategy middle=first-wins
  says s.json '"backend": *"mixed"'
  says out 'a module was given a backend or a strategy of its own'
  with max-throughput 3 --module-strategy middle=min-memory
  error_form
  says err 'hint: .*first-wins'
  with max-throughput 3 --module-strategy nosuch=first-wins
  error_form
  says err "no part of the model is module 'nosuch'"
  # traffic
  for n in 1 3 3; do expect 0 run "$digits" --random 1 --size s40=$n --record-trace day.jsonl; done
  [ "$(wc -l <day.jsonl)" = 3 ] || fail "not three requests"
  says day.jsonl '^{"t": [0-9.]*, "inputs": {"image": \[3, 1, 8, 8\]}}$'
  expect 0 replay "$digits" --trace day.jsonl --budget 0.1 --limit 1000s
  narrow out
  says out '3 requests'
  says out 'image \[1, 1, 8, 8\] *1 '
  says out '100.00% answered within'
  expect 0 replay "$digits" --trace day.jsonl --budget 0.1 --json
  json out
  says out '"wait_p99_s"'
  with traffic=day.jsonl 0
  says s.json '"strategy": *"traffic=day.jsonl,p99"'
  narrow out
  says out '^traffic day.jsonl, 3 requests'
  with traffic=day.jsonl,goodput=100 0
  says s.json '"goodput_per_s"'
  # what is wrong with a trace is told by file and line
  { cat day.jsonl; echo '{"t": 1, "inputs": {"image": [3, 1, 8'; } >cut.jsonl
  echo '{"t": 1, "inputs": {"picture": [3, 1, 8, 8]}}' >name.jsonl
  printf '{"t": 1, "batch": 1}\n\n{"t": 1, "inputs": {"image": [3, 1, 9, 8]}}\n' >size.jsonl
  printf '{"t": 1, "batch": 5000}\n' >large.jsonl
  for bad in cut:4 name:1 size:3 large:1; do
    with "traffic=${bad%:*}.jsonl" 3
    error_form
    says err "trace '${bad%:*}.jsonl' line ${bad#*:}: "
    expect 3 replay "$digits" --trace "${bad%:*}.jsonl"
    error_form
    says err "trace '${bad%:*}.jsonl' line ${bad#*:}: "
  done
  expect 3 replay "$digits" --trace nosuch.jsonl
  error_form
  expect 2 replay "$digits"
  error_form
}
# An error beside a report.
error_form_with_report() { [ "$(grep -c '^ait: ' err)" = 1 ] || fail "not one line of error"; }

# wait_for TEXT FILE: until a running program has said it.
wait_for() {
  n=0
  until grep -q -- "$1" "$2" 2>/dev/null; do
    n=$((n + 1))
    [ $n -gt 300 ] && return 1
    sleep 0.1
  done
}

faults_part() {
  tune="tune $digits --random 1 --size s40=64 --threads 2 --record r.db"
  # kill -9: what was tried is in the record, nothing else is left
  rm -f out err
  # shellcheck disable=SC2086
  "$ait" $tune -o k.ait --budget 60 >out 2>err </dev/null &
  pid=$!
  wait_for 'threads=.*: ' err || fail "no candidate was tried"
  kill -9 $pid
  wait $pid 2>/dev/null
  [ -e k.ait ] && fail "a killed run left a file"
  # shellcheck disable=SC2086
  expect 0 $tune -o k.ait --budget 3
  says err '(from the record)'
  # interrupt: 130, the record stays, no file
  rm -f r.db* out err
  # shellcheck disable=SC2086
  "$ait" $tune -o i.ait --budget 60 >out 2>err </dev/null &
  pid=$!
  wait_for 'threads=.*: ' err || fail "no candidate was tried"
  kill -INT $pid
  wait $pid
  [ $? -eq 130 ] || fail "exit code after an interrupt"
  says err '^ait: .*interrupted'
  [ -e i.ait ] && fail "an interrupted run left a file"
  # shellcheck disable=SC2086
  expect 0 $tune -o i.ait --budget 3
  says err '(from the record)'
  # a full disk, as a limit on file sizes: an error, and the file as it was
  echo before >full.ait
  (
    ulimit -f 8
    # shellcheck disable=SC2086
    "$ait" $tune -o full.ait --record none --budget 1 --backends null >out 2>err
    [ $? -eq 4 ] || [ $? -eq 1 ]
  ) || fail "exit code on a full disk"
  [ "$(cat full.ait)" = before ] || fail "a full disk left half a file"
  (
    ulimit -f 8
    "$ait" opt "$digits" -o full.txt >out 2>err
    [ $? -eq 4 ]
  ) || fail "exit code of opt -o on a full disk"
  [ -e full.txt ] && fail "a full disk left half a text"
  (
    ulimit -f 1
    "$ait" ops --json=full.json >out 2>err
    [ $? -eq 4 ]
  ) || fail "exit code of --json=FILE on a full disk"
  [ -e full.json ] && fail "a full disk left half a JSON file"
  (
    ulimit -f 8
    "$ait" run "$digits" --random 1 --size s40=1024 -o full.npz >out 2>err
    [ $? -eq 4 ]
  ) || fail "exit code of run -o on a full disk"
  [ -e full.npz ] && fail "a full disk left half an npz"
  find . -name '*.tmp*' | grep -q . && fail "temporary files are left: $(find . -name '*.tmp*')"
  if [ -w /dev/full ]; then
    for command in 'ops' 'ops --json' 'help' '--version' 'backends' "opt $digits" "inspect $digits --no-roofline" "run $digits --random 1"; do
      # shellcheck disable=SC2086
      "$ait" $command >/dev/full 2>err
      [ $? -eq 4 ] || fail "exit code of ait $command to a full device"
      : >out
      error_form
    done
    expect 4 run "$digits" --random 1 -o /dev/full
    [ -c /dev/full ] || fail "/dev/full was replaced"
  fi
  # a reader that goes away is no fault to talk about
  "$ait" ops 2>err | head -1 >out
  [ -s err ] && fail "a closed pipe is complained about"
  # no place for the record: a warning with the path, and the tuning goes on
  echo file >cachefile
  XDG_CACHE_HOME=$work/cachefile
  expect 0 tune "$digits" --random 1 --size s40=4 --threads 1 -o w.ait --budget 1
  says err "warning: nothing will be recorded.*cachefile"
  [ -s w.ait ] || fail "no file without a record"
  # a record that is none
  head -c 20000 "$images" >broken.db
  expect 0 tune "$digits" --random 1 --size s40=4 --threads 1 -o w.ait --budget 1 --record broken.db
  says err 'warning: nothing will be recorded.*broken.db'
  # no place for the result: told before the tuning
  expect 4 tune "$digits" --random 1 --threads 1 -o nosuch/folder/x.ait --budget 60 --record none
  error_form
  says err 'nosuch/folder/x.ait'
  # damaged artifacts
  size=$(wc -c <w.ait)
  head -c $((size / 2)) w.ait >half.ait
  : >empty.ait
  for file in half.ait empty.ait; do
    for command in "run --random 1" inspect report bench; do
      # shellcheck disable=SC2086
      expect 3 ${command} $file
      error_form
      says err $file
    done
  done
}

keys_part() {
  expect 0 key list
  says out 'no keys'
  expect 2 key
  expect 2 key nosuch
  error_form
  expect 2 key trust
  error_form
  expect 0 tune "$digits" -d "$images" --batch 8 -o own.ait --budget 1 --threads 1 --record none --sign own -q
  [ "$(stat -c %a config/ait/keys/own.key)" = 600 ] || fail "mode of a private key"
  expect 0 inspect own.ait
  narrow out
  says out "^signed by 'own'"
  expect 0 inspect own.ait --json
  json out
  says out '"state": *"trusted"'
  expect 0 report own.ait
  narrow out
  says out "^signed by 'own'"
  expect 0 report own.ait --json
  json out
  says out '"fingerprint"'
  expect 0 run own.ait --random 1 --require-signature
  [ -s err ] && fail "a trusted file is talked about"
  # what is signed is what sha256sum -c knows, but for the last two lines
  expect 0 key new anna
  says out '^ait-ed25519 .* anna$'
  expect 3 key new anna
  error_form
  hinted
  expect 3 key new ../anna
  error_form
  expect 0 key list
  narrow out
  says out '^anna .*trusted .*own'
  expect 0 key list --json
  json out
  expect 0 key show anna
  cp out anna.txt
  expect 3 key show nobody
  error_form
  expect 0 sign own.ait --key anna -o anna.ait
  expect 3 sign own.ait --key nobody
  error_form
  hinted
  expect 3 tune "$digits" --random 1 -o x.ait --sign nobody
  error_form
  [ -e x.ait ] && fail "a file that could not be signed"
  # somebody else
  expect 0 inspect anna.ait --keys theirs
  says out 'signed by a key that is not trusted here'
  expect 0 run anna.ait --random 1 --keys theirs
  says err '^note: signed by a key that is not trusted'
  for command in 'run --random 1' inspect report 'verify --data x --expect y' bench; do
    # shellcheck disable=SC2086
    expect 4 $command anna.ait --require-signature --keys theirs
    error_form
    hinted
    says err anna.ait
  done
  expect 0 key trust anna.txt --keys theirs
  says out "^trusts 'anna'"
  expect 3 key trust anna.txt --keys theirs
  error_form
  expect 0 key trust "$(cat anna.txt)" --name bea --keys others
  says out "^trusts 'bea'"
  expect 3 key trust "$images" --keys theirs
  error_form
  expect 0 run anna.ait --random 1 --keys theirs --require-signature
  expect 0 key revoke anna --keys theirs
  expect 3 run anna.ait --random 1 --keys theirs --require-signature
  error_form
  says err revoked
  expect 0 inspect anna.ait --keys theirs
  says out REVOKED
  expect 3 key revoke nobody --keys theirs
  error_form
  # unsigned, altered, damaged store
  expect 0 tune "$digits" -d "$images" --batch 8 -o plain.ait --budget 1 --threads 1 --record none -q
  expect 0 inspect plain.ait
  says out '^not signed'
  expect 3 run plain.ait --random 1 --require-signature
  error_form
  hinted
  size=$(wc -c <anna.ait)
  at=$(grep -abo 'ait-signature 1' anna.ait | head -1 | cut -d: -f1)
  head -c $((at + 80)) anna.ait >bad.ait
  printf A >>bad.ait
  tail -c $((size - at - 81)) anna.ait >>bad.ait
  cmp -s anna.ait bad.ait && printf B | dd of=bad.ait bs=1 seek=$((at + 80)) conv=notrunc 2>/dev/null
  expect 3 run bad.ait --random 1
  error_form
  says err "entry 'SIGNATURE'"
  echo nonsense >theirs/bad.pub
  expect 3 run anna.ait --random 1 --keys theirs
  error_form
  says err 'bad.pub'
}

ship_part() {
  # a plan for each of two levels, then for this machine: the best one that fits runs
  expect 3 tune "$digits" -d "$images" -o s.ait --append --record none
  error_form
  hinted
  expect 0 tune "$digits" -d "$images" --batch 8 --budget 1 --threads 1 -q -o s.ait --isa scalar
  cp s.ait first.ait
  expect 0 tune "$digits" -d "$images" --batch 8 --budget 1 --threads 1 -q -o s.ait --isa avx2 --append
  cp s.ait second.ait
  expect 0 report s.ait --isa scalar
  narrow out
  says out '^\* scalar .*runs'
  expect 0 report s.ait --isa scalar --json
  json out
  says out '"why_not"'
  expect 0 run s.ait -i "$images" -o scalar.npz --isa scalar
  expect 0 run s.ait -i "$images" --labels label
  says out '447 of 450'
  expect 0 verify s.ait -i "$images" --expect scalar.npz --rtol 1e-4 --atol 1e-4
  if grep -qw avx2 /proc/cpuinfo; then
    expect 0 report s.ait --isa avx2
    says out '^\* sse2,avx2 .*runs'
  fi
  # again: the plan takes the place of the one of before, and equal records give equal bytes
  expect 0 tune "$digits" -d "$images" --batch 8 --budget 1 --threads 1 -q -o s.ait --isa avx2 --append
  cmp -s s.ait second.ait || fail "the same plan added twice changes the file"
  # from the .ait itself
  cp first.ait again.ait
  expect 0 tune first.ait -d "$images" --batch 8 --budget 1 --threads 1 -q -o again.ait --isa avx2 --append
  expect 0 report again.ait
  # nothing that runs here: the same answers, and what to do
  expect 0 report first.ait
  narrow out
  if grep -qw avx2 /proc/cpuinfo; then
    expect 0 tune "$digits" -d "$images" --batch 8 --budget 1 --threads 1 -q -o foreign.ait --isa avx2
    expect 0 run foreign.ait -i "$images" -o native.npz
    says out 'on native'
    expect 0 run foreign.ait -i "$images" -o foreign.npz --isa scalar
    says out 'on reference'
    says err 'which this CPU lacks or the caller masked'
    expect 0 verify foreign.ait -i "$images" --isa scalar --expect native.npz --rtol 0 --atol 1e-5
    expect 0 report foreign.ait --isa scalar
    says out 'no plan of the file runs here: the portable graph'
    says out 'append'
    expect 0 report foreign.ait --isa scalar --json
    says out '"advice": *"no plan of the file runs here'
  fi
  # another model is refused, by what differs
  expect 0 unpack first.ait -o u
  expect 3 tune "$other" --random 1 -q -o s.ait --append --record none --budget 1
  error_form
  hinted
  says err 'holds another model'
  cmp -s s.ait second.ait || fail "a refused --append changes the file"
  # nothing of the data is in the file unless it is asked for
  expect 0 unpack first.ait --list
  narrow out
  lacks out samples
  expect 0 tune "$digits" -d "$images" --batch 8 --budget 1 --threads 1 -q -o e.ait --embed-samples
  expect 0 tune e.ait -d "$images" --batch 8 --budget 1 --threads 1 -q -o kept.ait # what a file holds beside its model stays
  expect 0 unpack kept.ait -o kept
  [ -s kept/samples/0/0.npy ] || fail "samples are lost when an .ait is tuned"
  expect 0 unpack e.ait --list
  says out 'samples/0/0.npy'
  # neither paths, names of people and machines, keys, nor what stands in the environment
  expect 0 key new secret --keys keys
  AIT_TEST_SECRET=hunter2 expect 0 tune "$digits" -d "$images" --batch 8 --budget 1 --threads 1 -q -o k.ait --sign secret --keys keys
  private=$(sed -n 2p keys/secret.key)
  [ ${#private} -ge 40 ] || private=$(tr ' ' '\n' <keys/secret.key | awk 'length > 40' | head -1)
  [ ${#private} -ge 40 ] || fail "no private key to look for"
  for secret in "$work" "$data" "$private" "$(hostname)" "$HOME" hunter2 AIT_TEST_SECRET "$(date +%Y-%m-%d)"; do
    [ ${#secret} -ge 6 ] || continue
    grep -qF -- "$secret" e.ait first.ait s.ait k.ait && fail "'$secret' is in a file"
  done
  # unpack
  for f in manifest.json graph.bin graph.txt weights.safetensors targets; do
    [ -e u/$f ] || fail "unpack: no $f"
  done
  says u/graph.txt 'aten.conv2d'
  json u/manifest.json
  expect 0 unpack e.ait -o v --weights npz
  [ -s v/weights.npz ] && [ -s v/samples/0/0.npy ] || fail "unpack --weights npz"
  expect 0 run "$digits" -i "$images" --weights u/weights.safetensors --labels label
  says out '447 of 450'
  expect 3 unpack first.ait -o u
  error_form
  hinted
  expect 2 unpack first.ait
  expect 2 unpack first.ait -o w --list
  expect 2 unpack first.ait -o w --weights pickle
  expect 3 unpack "$images" -o w
  error_form
  [ -e w ] && fail "a folder of nothing"
  mkdir w
  ln -s /etc w/targets
  expect 3 unpack first.ait -o w
  error_form
  # a signed file stays signed only when it is signed again
  expect 0 sign s.ait -q
  expect 0 tune "$digits" -d "$images" --batch 8 --budget 1 --threads 1 -o s.ait --append --sign own -q
  expect 0 run s.ait --random 1 --require-signature
  expect 0 tune "$digits" -d "$images" --batch 8 --budget 1 --threads 1 -o s.ait --append
  says err 'was signed'
  expect 3 run s.ait --random 1 --require-signature
  # records
  expect 0 record export -o copy.db
  says out '^wrote copy.db: [1-9]'
  expect 0 record merge copy.db --record team.db
  says out '0 replaced'
  expect 0 record merge copy.db --record team.db --json
  json out
  expect 0 tune "$digits" -d "$images" --batch 8 --budget 1 --threads 1 -o t.ait --isa avx2 --record team.db
  says err '(from the record)'
  lacks err 'reference:'
  expect 0 record prune --older 30 --record team.db
  says out '^removed 0, '
  expect 0 record prune --older 0 --other-builds --record team.db
  for bad in 'prune' 'nosuch' 'merge' 'export' 'prune --older x'; do
    # shellcheck disable=SC2086
    expect 2 record $bad
    error_form
  done
  expect 3 record merge "$images" --record team.db
  error_form
  says err digits-test.npz
  expect 3 record merge nosuch.db --record team.db
  error_form
  expect 3 record export --record nosuch.db -o x.db
  error_form
}

"${part}_part"
[ $failures -eq 0 ] && echo "$part: passed" || echo "$part: $failures failed"
[ $failures -eq 0 ]
