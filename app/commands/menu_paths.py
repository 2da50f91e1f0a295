"""Paths of the menus, for example ``View/Theme``, shared by commands and the menu bar."""

from __future__ import annotations

from grpo_core.text import tr

FILE, EDIT, RUN, GO, VIEW = tr("File"), tr("Edit"), tr("Run", "menu"), tr("Go"), tr("View", "menu")
LESSONS, HELP = tr("Lessons"), tr("Help")
RECENT, EXPORT = (f"{FILE}/{name}" for name in (tr("Open recent"), tr("Export")))
THEME, LANGUAGE, LAYOUT, PANEL, PRESENTING = (
    f"{VIEW}/{name}" for name in (tr("Theme"), tr("Language"), tr("Layout"), tr("Panels"), tr("Presenting"))
)
LESSON = LESSONS + "/" + tr("The lesson that is open")
