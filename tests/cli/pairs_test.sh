#!/bin/sh
# ait embed, ait tokenize, and ait generate on models with an encoder: what users type, and what they are told.
#   pairs_test.sh AIT DATA
set -u
ait=$1
data=$2/llm
work=$(mktemp -d "${TMPDIR:-/tmp}/ait-cli-pairs.XXXXXX") || exit 1
cd "$work" || exit 1
trap 'rm -rf "$work"' EXIT
failures=0
fail() {
  failures=$((failures + 1))
  echo "FAILED: $*"
  sed 's/^/  err| /' err 2>/dev/null | tail -5
}
# expect CODE TEXT COMMAND...: the exit code, and words that its output or its error holds.
expect() {
  want=$1 text=$2
  shift 2
  "$ait" "$@" > out 2>err
  code=$?
  [ $code -eq "$want" ] || fail "exit $code, not $want: $*"
  grep -q -- "$text" out err || fail "no '$text': $*"
}
tokens() { tr -d ' \n' < out | sed 's/.*"tokens":\(\[[^]]*\]\),"text".*/\1/'; }

# Tokenizer: from a folder, from a file, from an artifact.
expect 0 proof deploy "$data/embed" -o e.ait --json
expect 3 'draft model' deploy "$data/embed" -o no.ait --draft e.ait
expect 0 '^2,66,70,5,3$' tokenize "$data/embed" --text "The fox!"
expect 0 '^2,66,70,5,3$' tokenize "$data/embed/tokenizer.json" --text "The fox!"
expect 0 '^2,66,70,5,3$' tokenize e.ait --text "The fox!"
expect 0 '^66,70,5$' tokenize e.ait --text "The fox!" --no-special
expect 0 '^2,66,3$' tokenize e.ait --text "The fox!" --max-length 3
expect 0 '\[SEP\]' tokenize e.ait --text a --pair b -v
expect 0 'the fox' tokenize e.ait --decode 2,66,70,3 --skip-special
expect 0 '"types":' tokenize e.ait --text a --json
printf 'the\nfox\n' > lines.txt
expect 0 '^2,70,3$' tokenize e.ait --file lines.txt --lines
expect 2 'one of' tokenize e.ait
expect 2 '1,2,3' tokenize e.ait --decode 1,x
expect 3 'itself adds' tokenize e.ait --text a --max-length 1
expect 3 'nowhere' tokenize nowhere --text a
echo '[{"role": "user", "content": "hi"}]' > chat.json
expect 3 'chat' tokenize e.ait --chat chat.json

# Embeddings.
expect 0 'length' embed e.ait --text "the fox" --text "a dog"
expect 0 '"embedding":' embed e.ait --text "the fox" --json
expect 0 '2 texts, 32 numbers' embed e.ait --file lines.txt -o v.npz
[ -s v.npz ] || fail "no vectors"
expect 0 '"prompt":"fox: "' embed e.ait --text a --prompt-name query --json
expect 2 'needs' embed e.ait
expect 2 'can be cls' embed e.ait --text a --pooling sum
expect 3 'prompt' embed e.ait --text a --prompt-name none
expect 3 'pools itself' embed e.ait --text a --pooling cls
expect 3 'input' embed "$data/llama.pt2" --text a --tokenizer "$data/embed"
expect 3 'not a deployed language model' generate e.ait --tokens 1

# Models with an encoder.
for model in t5 whisper; do expect 0 '"memory"' deploy "$data/$model" -o $model.ait --json; done
expect 0 'tokens' generate t5.ait --tokens 43,24,46,80,57 -n 6 --json -q
alone=$(tokens)
expect 0 'tokens' generate t5.ait --tokens 43,24,46,80,57 --decoder-tokens 0 -n 6 --json -q
[ "$alone" = "$(tokens)" ] || fail "the model's own beginning, spelled out"
expect 0 'tokens' generate whisper.ait --source "$data/whisper/features1.npy" -n 7 --json -q
alone=$(tokens)
printf '{"source": "%s/whisper/features0.npy", "max_tokens": 3}\n{"source": "%s/whisper/features1.npy", "max_tokens": 7}\n' "$data" "$data" > two.jsonl
"$ait" generate whisper.ait --requests two.jsonl --json -q > out 2>err || fail "two requests"
tail -1 out > last
mv last out
[ "$alone" = "$(tokens)" ] || fail "other tokens in a batch"
expect 3 'features' generate whisper.ait --tokens 1,2
expect 3 'token ids' generate t5.ait --source "$data/whisper/features0.npy"
expect 3 'among its 90' generate t5.ait --tokens 1,95
expect 3 'encoder' eval t5.ait --text lines.txt
expect 2 'one of' generate t5.ait
[ $failures -eq 0 ] && echo "ok" || exit 1
