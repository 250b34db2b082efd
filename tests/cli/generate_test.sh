#!/bin/sh
# ait deploy and ait generate: a request gets the tokens that it gets alone, whatever else runs beside it and however the work is cut.
#   generate_test.sh AIT DATA
set -u
ait=$1
data=$2/llm
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
expect 2 generate llama.ait --tokens 1 --speculate draft
expect 0 generate llama.ait --tokens 1,2 -n 3 --draft llama.ait --json -q
[ $failures -eq 0 ] && echo "ok" || exit 1
