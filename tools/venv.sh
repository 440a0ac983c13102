#!/bin/sh
# Makes or renews a virtual environment with wend (editable) and the tools of a level:
#   tools/venv.sh FOLDER demo|test|dev
# demo < test < dev. Quick when nothing changed: a stamp in FOLDER is keyed on pyproject.toml.
# Uses uv, which it installs where it is not there, or pip. PYTHON=... chooses the interpreter.
set -eu

cd "$(dirname "$0")/.."
venv=$1
level=$2
py=$venv/bin/python

die() {
    printf 'wend set-up: %s\n' "$*" >&2
    exit 1
}

case $level in
    demo) covers="demo" ;;
    test) covers="demo test" ;;
    dev) covers="demo test dev" ;;
    *) die "no level '$level'; there are demo, test and dev" ;;
esac

# The folder is part of the key: an editable install and scripts hold its path.
key=$({ cat pyproject.toml tools/venv.sh; pwd; } | cksum)
stamp=$venv/.wend-$level

usable() { "$py" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$key" ] && usable; then
    exit 0
fi

# Print the first candidate at or above $1 and below $2 that can make virtual environments.
find_python() {
    for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11 python3.14 python}; do
        if "$candidate" -c "import sys, ensurepip, venv
sys.exit(not ($1) <= sys.version_info[:2] < ($2))" 2>/dev/null; then
            printf '%s\n' "$candidate"
            return
        fi
    done
}

uv=
if command -v uv >/dev/null 2>&1 && uv pip install --help 2>/dev/null | grep -q -e '--group'; then
    uv=uv
fi

if ! usable; then
    if [ -e "$venv" ]; then
        [ -f "$venv/pyvenv.cfg" ] || die "'$venv' is there but is no virtual environment; move it away"
        rm -rf "$venv"
    fi
    python=$(find_python '3, 11' '3, 14') # the tested versions first
    [ -n "$python" ] || python=$(find_python '3, 11' '4, 0')
    if [ -n "$python" ]; then
        printf 'Making %s with %s\n' "$venv" "$("$python" --version)"
    elif [ -z "$uv" ]; then
        die "no Python >= 3.11 with venv and pip found (tried ${PYTHON:-python3, python3.11 to 3.14}).
Install one (on Debian and Ubuntu: apt install python3 python3-venv), or uv,
or name one: make PYTHON=/path/to/python3.12 ..."
    elif [ -n "${PYTHON:-}" ]; then
        die "PYTHON=$PYTHON is no Python >= 3.11"
    else
        python=3.13 # uv brings it
        printf 'Making %s with Python %s from uv\n' "$venv" "$python"
    fi
    if [ -n "$uv" ]; then
        uv venv --quiet --seed --python "$python" "$venv"
    else
        "$python" -m venv "$venv"
    fi
fi

set -- -e '.[demo]'
[ "$level" = demo ] || set -- "$@" --group "$level"
printf 'Installing wend and its %s tools into %s (the first time takes a minute)\n' "$level" "$venv"
# uv takes a tenth of pip's time. pip has settings of its own (indexes, proxies): it is asked where
# uv cannot install.
if [ -z "$uv" ]; then
    "$py" -m pip --version >/dev/null 2>&1 || "$py" -m ensurepip >/dev/null
    if "$py" -m pip install --quiet --disable-pip-version-check uv >/dev/null 2>&1; then
        uv=$venv/bin/uv
    fi
fi
if [ -z "$uv" ] || ! "$uv" pip install --quiet --python "$py" "$@"; then
    # Dependency groups came with pip 25.1.
    "$py" -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
    "$py" -m pip install --quiet --disable-pip-version-check "$@"
fi

for done in $covers; do
    printf '%s\n' "$key" >"$venv/.wend-$done"
done
