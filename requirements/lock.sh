#!/bin/sh
# Usage: requirements/lock.sh [--upgrade]
# Compiles dev.txt, then run.txt and a file for each extra (run.txt with hosted models, with agents that speak MCP, or with
# a tracker) under its versions, so that all name one version of everything; and each set with an environment of its
# own by itself. Every supported Python gets the same versions, so that a seed makes the same labels
# on each. The files hold pins and hashes for every platform and no address of where they came from.
set -eu
PATH=$PATH:.venv/bin
command -v uv >/dev/null || { echo "error: make lock needs uv; install it with .venv/bin/python -m pip install uv" >&2; exit 1; }

compile() {
    uv --no-config pip compile --quiet --universal --no-strip-extras --python-version 3.11 --fork-strategy fewest --generate-hashes --no-annotate \
        --no-emit-index-url --custom-compile-command "make lock" "$@" >/dev/null
}

compile "$@" pyproject.toml requirements/build.in requirements/dev.in --extra llm --extra mcp --extra mlflow --extra wandb --extra cluster --extra human \
    --output-file requirements/dev.txt
for which in run llm mcp mlflow wandb cluster human; do
    [ $which = run ] && extra="" || extra="--extra $which"
    # shellcheck disable=SC2086
    compile "$@" pyproject.toml requirements/build.in $extra --constraint requirements/dev.txt \
        --output-file requirements/$which.txt
done
compile "$@" requirements/hermes.in --output-file requirements/hermes.txt
compile "$@" requirements/local-model.in --output-file requirements/local-model.txt
for which in harbor receivers; do
    compile "$@" requirements/$which.in --python-version 3.12 --output-file requirements/$which.txt
done
for which in nemo-gym openenv trl verifiers; do
    [ $which = nemo-gym ] && oldest=3.12 || oldest=3.11
    compile "$@" pyproject.toml requirements/build.in requirements/$which.in --python-version $oldest --output-file requirements/$which.txt
done

if grep -n '://' requirements/*.txt; then
    echo "error: an address got into the lock files (lines above); unset index settings of uv and lock again" >&2
    exit 1
fi
