#!/bin/sh
# Usage: requirements/install.sh run|desk|llm|mcp|mlflow|wandb|cluster|human|dev|hermes|harbor|local-model|nemo-gym|openenv|receivers|trl|verifiers VENV
# Installs the pinned, hash-checked packages of one set with pip, and this checkout unless the set is hermes, harbor, local-model or receivers; desk, which
# needs the packages of run, and dev install the desk suite too. VENV is made if it is missing. VENV.unfinished exists
# while packages are installed; where one was left over, VENV is made again. Exits with 3 where no Python is new enough.
set -eu
which=$1
venv=$2
requirements=requirements/$which.txt
checkout="-e ."
minimum=11 # The oldest Python 3 of the set.
case $which in
    desk) requirements=requirements/run.txt checkout="-e . -e packages/finskillbench-desk" ;;
    dev) checkout="-e . -e packages/finskillbench-desk" ;;
    hermes | harbor | receivers) checkout="" ;;
    local-model) # The server of llama.cpp is compiled too, without its web page, which would be downloaded.
        checkout=""
        export CMAKE_ARGS='-DLLAMA_BUILD_TOOLS=ON -DLLAMA_BUILD_SERVER=ON -DLLAMA_TOOLS_INSTALL=ON -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_OPENSSL=OFF -DLLAVA_BUILD=OFF -DCMAKE_INSTALL_RPATH=$ORIGIN/../lib'
        ;;
esac
case $which in harbor | nemo-gym | receivers) minimum=12 ;; esac
unfinished=$venv.unfinished

fail() { echo "error: $*" >&2; exit 1; }

# Prints the first interpreter in range that can make environments; PYTHON=/path/to/python3 comes first if set. What
# pyenv puts on PATH starts only the versions that are switched on, so its versions come last.
find_python() {
    for candidate in ${PYTHON:-} python3.13 python3.12 python3.11 python3 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[123].*/bin/python3; do
        if "$candidate" -c "import sys, venv, ensurepip; sys.exit(not (3, $minimum) <= sys.version_info < (3, 14))" 2>/dev/null
        then
            echo "$candidate"
            return
        fi
    done
    echo "error: $which needs Python 3.$minimum to 3.13 with its venv module, and none is on PATH; install one or set PYTHON=/path/to/python3" >&2
    exit 3
}

make_environment() {
    echo "Making $venv with $("$python" --version)"
    "$python" -m venv --clear "$venv"
}

pip() { "$venv/bin/python" -m pip --disable-pip-version-check "$@"; }

# Compiling in a pass of its own, on all cores and without the packages' tests, takes a third of pip's time. Of Hermes a
# tenth is ever imported.
install_packages() {
    echo "Installing the $(grep -c '==' "$requirements") pinned packages of $requirements (once; a minute or two)"
    pip install --quiet --no-compile --no-deps --require-hashes -r "$requirements" ||
        fail "pip could not install $requirements (see above); remove the cause and give the same command again"
    [ -z "$checkout" ] || pip install --quiet --no-compile --no-deps --no-build-isolation $checkout ||
        fail "pip could not install this checkout (see above); give the same command again"
    [ -z "$checkout" ] || [ -n "${PYTHONDONTWRITEBYTECODE:-}" ] ||
        "$venv/bin/python" -W ignore -m compileall -qq -j 0 -x 'site-packages/.*/tests/' "$venv"/lib/python3*/site-packages || true
}

if [ -e "$unfinished" ] || ! pip --version >/dev/null 2>&1; then python=$(find_python); else python=$venv/bin/python; fi
# The lock is held until this process and those it started have ended, whatever ends them.
exec 9>>"$unfinished"
"$python" -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX | fcntl.LOCK_NB)' 2>/dev/null ||
    fail "another process is installing into $venv; wait for it, then give the same command again"
[ "$python" = "$venv/bin/python" ] || make_environment
install_packages
# Packages of other sets that older pins installed may contradict the new ones.
if [ "$python" = "$venv/bin/python" ] && ! pip check >/dev/null; then
    python=$(find_python)
    make_environment
    install_packages
fi
problems=$(pip check) || fail "$(echo "$problems" | head -n 1) (pip check, $requirements); run make lock, or take another revision"
rm "$unfinished"
