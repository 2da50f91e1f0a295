#!/usr/bin/env bash
# Makes sure that Python can make a virtual environment and that Qt finds the system libraries its plugins need.
# As root on Debian or Ubuntu it installs what is missing; otherwise it prints one line that does.
set -u
python=${1:-python3}

"$python" - <<'PY' || exit 1
import sys
if sys.version_info < (3, 11):
    sys.exit(f"GRPO Lab needs Python 3.11 or newer; {sys.executable} is {sys.version.split()[0]}. Set PYTHON=... to choose another.")
PY

command -v apt-get >/dev/null 2>&1 || exit 0  # not Debian or Ubuntu: the README names the libraries

version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
missing=()
"$python" -c 'import ensurepip, venv' >/dev/null 2>&1 || missing+=("python$version-venv")

have() { ldconfig -p 2>/dev/null | grep -q "$1" || [ -e "/usr/lib/$(uname -m)-linux-gnu/$1" ]; }
while read -r library package; do
    have "$library" || missing+=("$package")
done <<'LIBRARIES'
libGL.so.1 libgl1
libEGL.so.1 libegl1
libglib-2.0.so.0 libglib2.0-0
libfontconfig.so.1 libfontconfig1
libxkbcommon.so.0 libxkbcommon0
libdbus-1.so.3 libdbus-1-3
libxcb-cursor.so.0 libxcb-cursor0
libxkbcommon-x11.so.0 libxkbcommon-x11-0
libxcb-icccm.so.4 libxcb-icccm4
libxcb-keysyms.so.1 libxcb-keysyms1
libxcb-shape.so.0 libxcb-shape0
libxcb-xkb.so.1 libxcb-xkb1
LIBRARIES

[ ${#missing[@]} -eq 0 ] && exit 0
if [ "$(id -u)" -eq 0 ]; then
    echo "Installing system libraries: ${missing[*]}"
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null && exit 0
    echo "The system libraries could not be installed. Install them by hand and run make again:"
else
    echo "Some system libraries are missing. Install them and run make again:"
fi
echo "  sudo apt-get install -y ${missing[*]}"
case " ${missing[*]} " in *-venv*|*libgl1*|*libegl1*|*libglib2.0-0*|*libfontconfig1*|*libxkbcommon0*|*libdbus-1-3*) exit 1 ;; esac
exit 0  # only the libraries of an X display are missing; everything offscreen works
