"""A command: a user action, declared once as data together with the function that carries it out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

from PySide6.QtGui import QKeySequence

from grpo_core.text import tr

FILE, EDIT, RUN, GO, VIEW = tr("File"), tr("Edit"), tr("Run", "menu"), tr("Go"), tr("View", "menu")
LESSONS, HELP = tr("Lessons"), tr("Help")
RECENT, EXPORT = (f"{FILE}/{name}" for name in (tr("Open recent"), tr("Export")))
THEME, LANGUAGE, LAYOUT, PANEL, PRESENTING = (
    f"{VIEW}/{name}" for name in (tr("Theme"), tr("Language"), tr("Layout"), tr("Panels"), tr("Presenting"))
)
LESSON = LESSONS + "/" + tr("The lesson that is open")
"""Paths of the menus, for example ``View/Theme``, up to here."""
REST = "rest"
"""Subject of commands that are behind no door."""
Context: TypeAlias = Literal["app", "lesson", "present"]


def never_blocked() -> str:
    """Return an empty string. This is the condition of a command that can always run."""
    return ""


@dataclass(frozen=True, kw_only=True)
class Command:
    """One action that the user can take.

    ``blocked``, ``checked`` and ``face`` are called once per frame in the GUI thread, so they must only read existing
    state.

    Attributes:
        id: stable name, for example ``step_back`` or ``theme.dark``.
        text: name shown in menus, palette and sheet; sentence case, beginning with a verb.
        menu: path of its menu, for example ``View/Theme``; the first word is its group in the shortcut sheet.
        run: function that carries it out in the GUI thread, and returns at once.
        shortcuts: portable key names; the first is the one shown.
        context: where the shortcuts apply: in the entire program, in a lesson, or while presenting.
        tip: description in one sentence.
        blocked: function that returns the reason why it cannot run now; empty if it can.
        checked: function that returns whether it is on, for a command that can be switched on and off.
        face: function that returns its name and the name of its icon, if these change.
        repeats: whether holding the key runs it repeatedly.
        divided: whether there is a separator above it in the menu.
        after: id of the command that it follows in the table, for a command of a part; empty for the end.
        subject: what it is about; a door (:class:`app.widgets.panel_spec.Door`) chooses subjects. Empty for a command
            behind every door, :data:`REST` for one that is shown only with all others.
        listed: whether menus show it. The palette finds any other command once something is typed.
    """

    id: str
    text: str
    menu: str
    run: Callable[[], object]
    shortcuts: tuple[str, ...] = ()
    context: Context = "app"
    icon: str = ""
    tip: str = ""
    blocked: Callable[[], str] = never_blocked
    checked: Callable[[], bool] | None = None
    face: Callable[[], tuple[str, str]] | None = None
    repeats: bool = False
    divided: bool = False
    after: str = ""
    subject: str = ""
    listed: bool = True

    @property
    def changes(self) -> bool:
        """Whether the command's name, icon, check mark or enabled state ever changes."""
        return any((self.blocked is not never_blocked, self.checked, self.face))

    @property
    def group(self) -> str:
        """The command's heading in the shortcut sheet, which is its top-level menu."""
        return self.menu.split("/")[0]

    @property
    def keys(self) -> tuple[QKeySequence, ...]:
        return tuple(map(_sequence, self.shortcuts))

    @property
    def shown_keys(self) -> str:
        """The command's shortcuts in the platform's notation."""
        native = QKeySequence.SequenceFormat.NativeText
        return tr("  or  ").join(sequence.toString(native) for sequence in self.keys)


@cache
def _sequence(name: str) -> QKeySequence:
    return QKeySequence(name, QKeySequence.SequenceFormat.PortableText)


def conflicts(commands: Sequence[Command]) -> tuple[str, ...]:
    """Return a sentence for every ID or shortcut shared by two commands of one context, and for every invalid key."""
    sentences = []
    ids: set[str] = set()
    owners: dict[tuple[str, str], str] = {}
    for command in commands:
        if command.id in ids:
            sentences.append(tr("Two commands have the id {id}.").format(id=command.id))
        ids.add(command.id)
        for name, sequence in zip(command.shortcuts, command.keys, strict=True):
            place = (command.context, sequence.toString())
            if not sequence.toString():
                sentences.append(tr("The shortcut {name} of {id} is not a key.").format(name=name, id=command.id))
            elif place in owners:
                sentences.append(
                    tr("{owners} and {id} share the shortcut {name} in context {context}.").format(
                        owners=owners[place], id=command.id, name=name, context=command.context
                    )
                )
            owners[place] = command.id
    return tuple(sentences)
