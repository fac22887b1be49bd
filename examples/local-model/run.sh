#!/bin/sh
# Usage: examples/local-model/run.sh [OPTIONS OF finskillbench run]
# Starts serve.sh, plays 40 episodes under three conditions into runs/local-model, writes the report and stops the
# server. The same command resumes. The address is part of the model key: set PORT only for a new run.
set -eu
cd "$(dirname "$0")/../.."
url=http://127.0.0.1:${PORT:=8137}
run=runs/local-model

fail() { echo "error: $*" >&2; exit 1; }
answers() { .venv/bin/python -c "from urllib.request import urlopen; urlopen('$url/health', timeout=5)" 2>/dev/null; }

! answers || fail "port $PORT has a server already; stop it, or set PORT to another number"
[ -d editions/seven ] || .venv/bin/finskillbench data build --seed 7 --out editions/seven
mkdir -p runs
examples/local-model/serve.sh "$PORT" >"$run.log" 2>&1 &
server=$!
trap 'kill $server 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM
until answers; do
    kill -0 $server 2>/dev/null || fail "the server did not start; the last line of $run.log: $(tail -n 1 "$run.log")"
    sleep 0.2
done
code=0
.venv/bin/finskillbench run --edition editions/seven --model llama-cpp-python/SmolLM2-135M-Instruct \
    --base-url "$url/v1" --max-concurrency 1 --condition no_skill --condition curated --condition placebo \
    --sample 40 --turns 3 --max-tokens 192 --out "$run" "$@" || code=$?
[ $code -gt 1 ] || .venv/bin/finskillbench report "$run" --format html
exit $code
