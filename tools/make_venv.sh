#!/bin/sh
# Makes the virtual environment $1 with the interpreter in PYTHON, or the first of python3.11 and python3 that is new enough.
set -eu
venv=$1

new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

if [ -x "$venv/bin/python" ] && new_enough "$venv/bin/python" && "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    exit 0
fi

chosen=
for candidate in ${PYTHON:-python3.11 python3}; do
    if new_enough "$candidate"; then
        chosen=$candidate
        break
    fi
done
if [ -z "$chosen" ]; then
    echo "GRPO Lab needs Python 3.11 or newer; ${PYTHON:-python3.11 and python3} did not answer as one. Name another with PYTHON=/path/to/python." >&2
    exit 1
fi

# Debian and Ubuntu package the standard library's ensurepip apart from the interpreter.
if ! "$chosen" -c 'import ensurepip, venv' >/dev/null 2>&1; then
    package=$("$chosen" -c 'import sys; print(f"python{sys.version_info[0]}.{sys.version_info[1]}-venv")')
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "Installing $package."
        apt-get update -qq </dev/null || true
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" </dev/null >/dev/null || true
    fi
    if ! "$chosen" -c 'import ensurepip, venv' >/dev/null 2>&1; then
        echo "This Python cannot make virtual environments yet. On Debian or Ubuntu: sudo apt-get install -y $package" >&2
        exit 1
    fi
fi

echo "Making the environment $venv with $("$chosen" --version) (once)."
"$chosen" -m venv --clear "$venv"
