"""The menus by name, so that a command and the menu bar mean the same one."""

from __future__ import annotations

from grpo_core.text import tr

FILE, EDIT, RUN, GO, VIEW, HELP = tr("File"), tr("Edit"), tr("Run"), tr("Go"), tr("View"), tr("Help")
RECENT, EXPORT = f"{FILE}/{tr('Open recent')}", f"{FILE}/{tr('Export')}"
THEME, LAYOUT, PANELS = f"{VIEW}/{tr('Theme')}", f"{VIEW}/{tr('Layout')}", f"{VIEW}/{tr('Panels')}"
PRESENTING, LESSON = f"{VIEW}/{tr('Presenting')}", f"{HELP}/{tr('Lesson')}"
