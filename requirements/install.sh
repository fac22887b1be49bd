#!/bin/sh
# Usage: requirements/install.sh run|llm|mcp|mlflow|wandb|cluster|dev|hermes VENV
# Makes the environment if it is missing and installs the pinned, hash-checked requirements and this checkout into it; the
# environment of hermes holds nothing of this checkout.
set -eu
which=$1
venv=$2
requirements=requirements/$which.txt

# Prints the first interpreter in range that can make environments; PYTHON=/path/to/python3 comes first if set.
find_python() {
    for candidate in ${PYTHON:-} python3.13 python3.12 python3.11 python3; do
        if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null
        then
            echo "$candidate"
            return
        fi
    done
    echo "error: no Python 3.11, 3.12 or 3.13 with its venv module on PATH; install one or set PYTHON=/path/to/python3" >&2
    exit 1
}

rm -f "$venv"/.installed-"$which"-*
if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    python=$(find_python)
    echo "Making $venv with $("$python" --version)"
    "$python" -m venv --clear "$venv"
fi

# Of Hermes a tenth is ever imported: compiling the rest takes half of the time.
[ "$which" = hermes ] && compile=--no-compile || compile=
echo "Installing the $(grep -c '==' "$requirements") pinned packages of $requirements (once; a minute or two)"
if ! { command -v uv >/dev/null 2>&1 &&
    uv pip install --quiet --python "$venv/bin/python" --require-hashes -r "$requirements" 2>/dev/null; }; then
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check $compile --require-hashes -r "$requirements"
fi
[ "$which" = hermes ] ||
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
