#!/bin/sh
# Puts GRPO Lab into the menu of programs of this user, and opens run files with it; --remove takes both away again.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
data=${XDG_DATA_HOME:-$HOME/.local/share}
entry=$data/applications/grpo-lab.desktop
types=$data/mime/packages/grpo-lab.xml
icon=$data/icons/hicolor/scalable/apps/grpo-lab.svg

if [ "${1:-}" = --remove ]; then
    rm -f "$entry" "$types" "$icon"
else
    mkdir -p "$(dirname "$entry")" "$(dirname "$types")" "$(dirname "$icon")"
    # Inside the quotes of an Exec line “\”, “"”, “`” and “$” take a backslash, and every backslash is written twice.
    program=$(printf '%s' "$here/grpo-lab" | sed -e 's/\\/\\\\\\\\/g' -e 's/["`$]/\\\\&/g' -e 's/%/%%/g')
    while IFS= read -r line; do
        case $line in
            Exec=*) printf 'Exec="%s" %%f\n' "$program" ;;
            *) printf '%s\n' "$line" ;;
        esac
    done <"$here/share/grpo-lab.desktop" >"$entry"
    cp "$here/share/grpo-lab.xml" "$types"
    cp "$here/_internal/resources/icons/grpo-lab.svg" "$icon"
fi

# Desktops without these look for themselves, at the next log-in at the latest.
update-mime-database "$data/mime" 2>/dev/null || true
update-desktop-database "$data/applications" 2>/dev/null || true
