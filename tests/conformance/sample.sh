#!/bin/sh
# The sample of the ATen suite (439 cases of 230 operators) on the reference and on native: sample.sh AIT FOLDER-OF-THIS
set -eu
ait=$1 here=$2
work=$(mktemp -d "${TMPDIR:-/tmp}/ait-sample.XXXXXX")
trap 'rm -rf "$work"' EXIT
tar -xzf "$here/sample.tar.gz" -C "$work"
for backend in reference native; do
  "$ait" verify --cases "$work/sample" --backend $backend -q
done
