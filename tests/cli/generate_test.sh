#!/bin/sh
# ait deploy and ait generate: a request gets the tokens that it gets alone, whatever else runs beside it and however the work is cut.
#   generate_test.sh AIT DATA
set -u
ait=$(realpath "$1") || exit 1
data=$(realpath "$2/llm") || exit 1
work=$(mktemp -d "${TMPDIR:-/tmp}/ait-cli-generate.XXXXXX") || exit 1
cd "$work" || exit 1
trap 'rm -rf "$work"' EXIT
failures=0
fail() {
  failures=$((failures + 1))
  echo "FAILED: $*"
  sed 's/^/  err| /' err 2>/dev/null | tail -5
}
tokens() { sed -n 's/.*"tokens": *\(\[[^]]*\]\), *"text".*/\1/p'; }

# Prompts that share beginnings, repeat themselves, and have different lengths.
cat > requests.jsonl << 'END'
{"tokens": [5, 6, 7, 5, 6, 7, 5, 6, 7, 5, 6, 7, 5, 6, 7, 5, 6, 7, 5, 6, 7, 5, 6, 7, 5, 6, 7, 5, 6, 7, 5, 6, 7, 5], "max_tokens": 14}
{"tokens": [5, 6, 7, 5, 6, 7, 5, 6, 7, 5, 6, 7, 5, 6, 7, 5, 6, 7, 5, 6, 7, 5, 6, 7, 5, 6, 7, 5, 6, 7, 5, 6, 7, 9], "max_tokens": 9}
{"tokens": [11], "max_tokens": 20}
{"tokens": [3, 1, 4, 1, 5, 9, 2, 6], "max_tokens": 17, "temperature": 0.8, "top_k": 9, "seed": 4}
{"tokens": [3, 1, 4, 1, 5, 9, 2, 7], "max_tokens": 5}
END
for model in llama gpt_oss bamba causal_conv; do
  "$ait" deploy "$data/$model.pt2" -o $model.ait --max-seq 64 --page-size 8 -q 2>err || { fail "deploy $model"; continue; }
  : > alone
  while read -r line; do
    echo "$line" > one.jsonl
    "$ait" generate $model.ait --requests one.jsonl --ignore-stop --no-prefix-reuse --json -q 2>err | tokens >> alone
  done < requests.jsonl
  [ "$(wc -l < alone)" -eq 5 ] || fail "$model: answers to requests by themselves"
  for way in "" "--step-tokens 3" "--max-sequences 2 --threads 2" "--no-prefix-reuse --no-overlap" "--step-tokens 7 --max-sequences 3"; do
    # shellcheck disable=SC2086
    "$ait" generate $model.ait --requests requests.jsonl --ignore-stop --json -q $way 2>err | tokens > together
    cmp -s alone together || fail "$model $way: other tokens than alone"
  done
  "$ait" generate $model.ait --requests requests.jsonl --ignore-stop --json -q --speculate ngram 2>err | tokens > guessed
  [ "$(sed -n '1,3p;5p' alone)" = "$(sed -n '1,3p;5p' guessed)" ] || fail "$model: other tokens with speculation"
done

# A smaller model in the file proposes tokens, as a file and as a source; answers stay, and whoever writes the file anew keeps it.
ask() { "$ait" generate "$1" --requests requests.jsonl --ignore-stop --json -q 2>err; }
one() { "$ait" generate with.ait --tokens 5,6,7,5,6,7 -n 12 --ignore-stop --json -q "$@" 2>err; }
greedy() { tokens | sed -n '1,3p;5p'; }
plain=$(ask llama.ait | greedy)
deploy="deploy $data/llama.pt2 --max-seq 64 --page-size 8 -q"
for draft in llama.ait "$data/llama.pt2"; do
  # shellcheck disable=SC2086
  "$ait" $deploy -o with.ait --draft "$draft" 2>err || fail "deploy with draft model $draft"
  [ "$(ask with.ait | greedy)" = "$plain" ] || fail "draft model $draft: other tokens"
  one | grep -q '"accepted": *[1-9]' || fail "draft model $draft: nothing was accepted"
  one --speculate none | grep -q '"drafted": *0,' || fail "draft model $draft: --speculate none drafts"
done
[ -z "$(ls ./*.tmp 2>/dev/null)" ] || fail "left behind: $(ls ./*.tmp)"
"$ait" unpack with.ait -o with >out 2>err || fail "unpack with a draft model"
cmp -s with/draft.ait llama.ait || fail "the draft model was not deployed with the same options"
"$ait" generate with/draft.ait --tokens 5,6,7 --ignore-stop >out 2>err || fail "the draft model by itself"
size=$(wc -c < with.ait)
for at in 20 50 80 97; do # a byte of the draft model, and others
  cp with.ait bad.ait
  printf '\377\377\377\377' | dd of=bad.ait bs=1 seek=$((size * at / 100)) conv=notrunc 2>err
  cmp -s with.ait bad.ait && continue
  "$ait" unpack bad.ait -o bad$at >out 2>err && fail "damage at $at % is not found"
done

# What is wrong is said, with the right exit code.
expect() {
  want=$1
  shift
  "$ait" "$@" > out 2>err
  code=$?
  [ $code -eq "$want" ] || fail "exit $code, not $want: $*"
}
expect 2 generate llama.ait
expect 3 generate llama.ait --tokens 1,2,99999
grep -q "99999" err || fail "the token is not named"
expect 2 generate llama.ait --tokens 1,x
expect 3 generate llama.ait --requests nothing.jsonl
expect 3 eval llama.ait --text nothing.txt
expect 3 generate llama.ait -p text # no tokenizer in the file
expect 3 generate "$data/llama.pt2" --tokens 1
echo '{"tokens": [1], "temperature": "hot"}' > bad.jsonl
expect 3 generate llama.ait --requests bad.jsonl
grep -q "line 1" err || fail "the line is not named"
for bias in '{"x": 1}' '{"1": null}' '{"-1": 1}' '[1]'; do
  echo "{\"tokens\": [1], \"logit_bias\": $bias}" > bad.jsonl
  expect 3 generate llama.ait --requests bad.jsonl
  grep -q "logit_bias" err || fail "the key is not named"
done
expect 3 generate llama.ait --tokens 1 --speculate draft
grep -q "no draft model" err || fail "the missing draft model is not named"
expect 0 generate llama.ait --tokens 1,2 -n 3 --draft llama.ait --json -q
# shellcheck disable=SC2086
for draft in missing.ait bamba.ait requests.jsonl; do
  expect 3 $deploy -o no.ait --draft $draft
  grep -q "$draft" err || fail "draft model $draft is not named"
  [ -e no.ait ] && fail "a file without its draft model $draft"
done
[ $failures -eq 0 ] && echo "ok" || exit 1
