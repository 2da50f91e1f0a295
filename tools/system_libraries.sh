#!/bin/sh
# Looks for the shared libraries that Qt's wheels expect of the system and installs them where that is possible without asking
# (Debian or Ubuntu, as root). Otherwise says in one line what to install, and fails only if Qt cannot start.
# $1: the Python that Qt is installed in.
set -eu
python=$1

[ "$(uname -s)" = Linux ] || exit 0
command -v apt-get >/dev/null 2>&1 || exit 0

# soname:package; Qt does not load at all without the first six, and does not open a window under X without the others.
needed="libGL.so.1:libgl1 libEGL.so.1:libegl1 libgthread-2.0.so.0:libglib2.0-0 libfontconfig.so.1:libfontconfig1
    libxkbcommon.so.0:libxkbcommon0 libdbus-1.so.3:libdbus-1-3"
needed_for_x="libxcb-cursor.so.0:libxcb-cursor0 libxkbcommon-x11.so.0:libxkbcommon-x11-0 libxcb-icccm.so.4:libxcb-icccm4
    libxcb-keysyms.so.1:libxcb-keysyms1 libxcb-shape.so.0:libxcb-shape0 libxcb-xkb.so.1:libxcb-xkb1"

# The packages of those libraries that the loader does not know.
missing() {
    known=$(PATH="$PATH:/sbin:/usr/sbin" ldconfig -p)
    for pair in "$@"; do
        case "$known" in
            *"	${pair%%:*} "*) ;;
            *) printf ' %s' "${pair#*:}" ;;
        esac
    done
}

lacking=$(missing $needed)
lacking_for_x=$(missing $needed_for_x)
[ -n "$lacking$lacking_for_x" ] || exit 0

if [ "$(id -u)" = 0 ]; then
    echo "Installing the system libraries of Qt:$lacking$lacking_for_x"
    apt-get update -qq </dev/null || true
    # One by one where the lot fails: a name that this release does not know must not keep the others out.
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $lacking $lacking_for_x </dev/null >/dev/null ||
        for package in $lacking $lacking_for_x; do
            DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" </dev/null >/dev/null || true
        done
    lacking=$(missing $needed)
    lacking_for_x=$(missing $needed_for_x)
fi

# Without an X display its libraries are nobody's concern.
[ -n "${DISPLAY:-}" ] || lacking_for_x=
[ -n "$lacking$lacking_for_x" ] || exit 0
echo "Qt lacks system libraries; install them with: sudo apt-get install -y$lacking$lacking_for_x" >&2
[ -n "$lacking" ] || exit 0
QT_QPA_PLATFORM=offscreen "$python" -c 'from PySide6.QtWidgets import QApplication; QApplication([])' >/dev/null 2>&1
