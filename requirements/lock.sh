#!/bin/sh
# Usage: requirements/lock.sh [--upgrade]
# Compiles dev.txt, then run.txt under its versions, so that both name one version of everything. The files hold pins and
# hashes for every platform and no address of where they came from.
set -eu
PATH=$PATH:.venv/bin
command -v uv >/dev/null || { echo "error: make lock needs uv; install it with .venv/bin/python -m pip install uv" >&2; exit 1; }

compile() {
    uv --no-config pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
        --no-emit-index-url --custom-compile-command "make lock" "$@" >/dev/null
}

compile "$@" pyproject.toml requirements/build.in requirements/dev.in --output-file requirements/dev.txt
compile "$@" pyproject.toml requirements/build.in --constraint requirements/dev.txt --output-file requirements/run.txt

if grep -n '://' requirements/run.txt requirements/dev.txt; then
    echo "error: an address got into the lock files (lines above); unset index settings of uv and lock again" >&2
    exit 1
fi
