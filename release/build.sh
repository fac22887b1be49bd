#!/bin/sh
# Usage: release/build.sh PYTHON OUT
# Builds the source distribution and, from it, the wheel of each distribution into OUT, without a network. Only tracked
# files are read, as they stand now, from a copy: what lies about in a checkout, or was built before, gets into neither.
set -eu
python=$1
mkdir -p "$2"
out=$(cd "$2" && pwd)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git ls-files -z | tar --null -T - -cf - | tar -xf - -C "$copy"
rm -f "$out"/finskillbench[-_]*.whl "$out"/finskillbench[-_]*.tar.gz
for source in "$copy" "$copy"/packages/*; do
    "$python" -m build --no-isolation --outdir "$out" "$source" >"$copy.log" 2>&1 || { cat "$copy.log" >&2; rm -f "$copy.log"; exit 1; }
done
rm -f "$copy.log"
ls "$out"/finskillbench[-_]*
