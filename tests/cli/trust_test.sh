#!/bin/sh
# What a tuner leaves behind when it is killed, when four work on one record, and what it believes of a record.
#   trust_test.sh AIT DATA PLUGIN     KILLS=100: so many kills (default 10)
set -u
ait=$(realpath "$1") || exit 1
digits=$(realpath "$2/models/digits/digits.pt2") || exit 1
plugin=$(realpath "$3") || exit 1
kills=${KILLS:-10}
work=$(mktemp -d "${TMPDIR:-/tmp}/ait-cli-trust.XXXXXX") || exit 1
cd "$work" || exit 1
trap 'rm -rf "$work"' EXIT
XDG_CACHE_HOME=$work/cache
XDG_CONFIG_HOME=$work/config
TMPDIR=$work/tmp
export XDG_CACHE_HOME XDG_CONFIG_HOME TMPDIR
mkdir tmp
failures=0
fail() {
  failures=$((failures + 1))
  echo "FAILED: $*"
  sed 's/^/  err| /' err 2>/dev/null | tail -5
}
rows() { "$ait" record export --record "$1" -o rows.db --json 2>err | sed -n 's/.*"rows": *\([0-9]*\).*/\1/p'; }

tune="tune $digits --random 1 --size s40=64 --threads 2 -q"

# ---- kill -9 at random times: the record opens, nothing that was finished is lost, the artifact is whole or absent
known=0
seed=$$
while [ "$kills" -gt 0 ]; do
  kills=$((kills - 1))
  seed=$(((seed * 1103515245 + 12345) % 2147483648))
  # shellcheck disable=SC2086
  "$ait" tune "$digits" --random 1 --size s40=$((kills % 3 * 20 + 8)) --threads 2 -q -o k.ait --budget $((kills % 2 + 1)) \
    --seed $((seed % 7)) --record r.db >out 2>err </dev/null &
  pid=$!
  ms=$((seed / 65536 % 2500))
  sleep "$((ms / 1000)).$(printf %03d $((ms % 1000)))"
  kill -9 $pid 2>/dev/null
  wait $pid 2>/dev/null
  now=$known
  [ -e r.db ] && now=$(rows r.db)
  [ "${now:-0}" -ge "$known" ] || fail "$known rows were known, now '$now'"
  known=${now:-$known}
  if [ -e k.ait ]; then
    "$ait" run k.ait --random 1 --size s40=4 >out 2>err || fail "half an artifact"
    rm -f k.ait
  fi
done
[ "$known" -gt 0 ] || fail "no trial was ever finished"
sleep 0.3
for p in /proc/[0-9]*; do # a killed tuner leaves no children
  [ "$(readlink "$p/cwd" 2>/dev/null)" = "$work" ] && tr '\0' ' ' <"$p/cmdline" 2>/dev/null | grep -q "tune $digits" && fail "a child is left: $p"
done
rm -f rows.db rows.db-* r.db-*
left=$(find . -name '*.tmp*' -o -path './tmp/*')
[ -z "$left" ] || fail "left behind: $left"
# shellcheck disable=SC2086
"$ait" $tune -o k.ait --budget 3 --record r.db >out 2>err || fail "tuning after the kills"

# ---- four tuners on one new record
for i in 1 2 3 4; do
  # shellcheck disable=SC2086
  "$ait" $tune -o "four$i.ait" --budget 1 --record four.db >"out$i" 2>"err$i" </dev/null &
  eval "pid$i=\$!"
done
for i in 1 2 3 4; do
  eval "wait \$pid$i" || { cp "err$i" err && fail "tuner $i of four"; }
  grep -q 'nothing will be recorded' "err$i" && fail "tuner $i lost the record"
  [ -s "four$i.ait" ] || fail "tuner $i of four wrote nothing"
done
# shellcheck disable=SC2086
"$ait" tune "$digits" --random 1 --size s40=64 --threads 2 -o five.ait --budget 1 --record four.db >out 2>err || fail "a fifth"
grep -q 'native threads=2: .*(from the record)' err || fail "the fifth does not know what four have measured"

# ---- two runs that know nothing of each other choose the same plan, or call it a tie (make trust: it wants a machine that does nothing else)
if [ -n "${TWICE:-}" ]; then
  for i in 1 2; do
    "$ait" tune "$digits" --random 1 --size s40=64 -q -o twice.ait --budget 10 --record none >"twice$i" 2>err || fail "run $i of two"
  done
  one=$(sed -n 's/^winner: //p' twice1)
  two=$(sed -n 's/^winner: //p' twice2)
  [ "$one" = "$two" ] || grep -q "^within noise of it: $two;" twice1 || grep -q "^within noise of it: $one;" twice2 ||
    fail "'$one' won, then '$two', and neither run calls it a tie"
fi

# ---- deciding from a record alone
start=$(date +%s)
# shellcheck disable=SC2086
"$ait" $tune -o again.ait --budget 1 --record four.db --from-record >out 2>err || fail "--from-record"
[ $(($(date +%s) - start)) -le 5 ] || fail "--from-record is slow"
cmp -s five.ait again.ait || fail "the same record, another decision"
# shellcheck disable=SC2086
"$ait" $tune -o no.ait --record none.db --from-record >out 2>err
[ $? -eq 4 ] || fail "exit code without a record"
grep -q "no record 'none.db'" err || fail "the missing record is not named"
# shellcheck disable=SC2086
"$ait" tune "$digits" --random 2 --size s40=64 --threads 2 -q -o no.ait --record four.db --from-record >out 2>err
[ $? -eq 4 ] || fail "exit code without the oracle's answers"
grep -q "does not hold the oracle's answers" err || fail "what is missing is not named"
# shellcheck disable=SC2086
"$ait" $tune -o no.ait --budget 1 --record four.db --from-record --seed 99 >out 2>err
[ $? -eq 4 ] || fail "exit code without the contest"
grep -q "does not hold the final contest of '" err || fail "the missing contest is not named"
[ -e no.ait ] && fail "an artifact without a decision"

# ---- a plugin's code is part of what was measured, its version alone is not
cp "$plugin" one.so
tune="tune $digits --random 1 --size s40=4 --threads 1 --budget 1 --record plugin.db -o p.ait"
for step in new known changed; do
  [ $step = changed ] && echo more >>one.so
  # shellcheck disable=SC2086
  "$ait" $tune --plugin ./one.so >out 2>err || fail "tuning with a plugin"
  line=$(grep '^never threads=1: unsupported' err) || fail "the plugin was no candidate"
  case $step$line in
    known*record\)) ;;
    known*) fail "the plugin was tried again" ;;
    *record\)) fail "$step: the record knew the plugin" ;;
  esac
done

[ $failures -eq 0 ] && echo "trust: passed" || echo "trust: $failures failed"
[ $failures -eq 0 ]
