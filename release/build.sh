#!/bin/sh
# Usage: release/build.sh PYTHON OUT
# Builds the source distribution and, from it, the wheel into OUT, without a network. Only tracked files are read, as they
# stand now, from a copy: what lies about in a checkout, or a build before this one left there, gets into neither.
set -eu
python=$1
mkdir -p "$2"
out=$(cd "$2" && pwd)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git ls-files -z | tar --null -T - -cf - | tar -xf - -C "$copy"
rm -f "$out"/finskillbench-*.whl "$out"/finskillbench-*.tar.gz
"$python" -m build --no-isolation --outdir "$out" "$copy" >"$copy.log" 2>&1 || { cat "$copy.log" >&2; rm -f "$copy.log"; exit 1; }
rm -f "$copy.log"
ls "$out"/finskillbench-*
