"""A command: something the user can do, declared once as data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

from PySide6.QtGui import QKeySequence

from grpo_core.text import tr

Context: TypeAlias = Literal["app", "lesson", "present"]


@dataclass(frozen=True, kw_only=True)
class State:
    """What decides whether a command can run. The window builds one a frame; equal states cost one comparison.

    Attributes:
        running: updates are being computed or replayed.
        head: last computed update of the active run.
        step: the update under the cursor.
        read_only: the run can be looked at but not continued; the reason, or empty.
        next_event, previous_event: there is something to jump to.
        can_undo, can_redo: there is an edit to take back, or to make again.
        explainable: a number is selected that can be explained.
        has_plot: the panel in focus has a picture and a table twin.
        table_twin: that panel shows its table.
        saved: the run has been saved under a name.
        full_screen: the window fills the screen.
        theme, scale, reduced_motion, thinning, layout: as in the preferences.
        panels: ids of the panels that are shown.
        presenting: a class looks on.
        maximized: one panel stands in the place of all.
        aids: what helps the class and the speaker: "blank", "ring", "counter", "speaker".
        lesson: a lesson is being given.
    """

    running: bool = False
    head: int = 0
    step: int = 0
    read_only: str = ""
    next_event: bool = False
    previous_event: bool = False
    can_undo: bool = False
    can_redo: bool = False
    explainable: bool = False
    has_plot: bool = False
    table_twin: bool = False
    saved: bool = False
    full_screen: bool = False
    theme: str = "system"
    scale: float = 1.0
    reduced_motion: bool = False
    thinning: bool = False
    layout: str = ""
    panels: frozenset[str] = frozenset()
    presenting: bool = False
    maximized: bool = False
    aids: frozenset[str] = frozenset()
    lesson: bool = False


def never_blocked(state: State) -> str:
    """The rule of a command that can always run."""
    return ""


@dataclass(frozen=True, kw_only=True)
class Command:
    """One thing the user can do.

    Attributes:
        id: stable, such as ``step_back`` or ``theme.dark``.
        text: sentence case, a verb first; what menus, palette and sheet show.
        menu: where it stands, such as ``View/Theme``; its first word is its group in the shortcut sheet.
        run: does it, in the GUI thread.
        shortcuts: portable key names, the first is the one shown.
        context: where the shortcuts act: in the whole program, in a lesson, while presenting.
        icon: name of an icon, or empty.
        tip: one sentence.
        blocked: why it cannot run now, in a sentence; empty when it can.
        checked: for a command that is on or off.
        text_now: a text that changes with the state.
        repeats: a held key runs it again and again.
        divided: a line above it in the menu.
    """

    id: str
    text: str
    menu: str
    run: Callable[[], object]
    shortcuts: tuple[str, ...] = ()
    context: Context = "app"
    icon: str = ""
    tip: str = ""
    blocked: Callable[[State], str] = never_blocked
    checked: Callable[[State], bool] | None = None
    text_now: Callable[[State], str] | None = None
    repeats: bool = False
    divided: bool = False

    def enabled(self, state: State) -> bool:
        """Whether it can run."""
        return not self.blocked(state)

    def title(self, state: State) -> str:
        """What it is called now."""
        return self.text_now(state) if self.text_now else self.text

    @property
    def group(self) -> str:
        """Its heading in the shortcut sheet."""
        return self.menu.split("/")[0]

    @property
    def keys(self) -> tuple[QKeySequence, ...]:
        return tuple(map(_sequence, self.shortcuts))

    @property
    def shown_keys(self) -> str:
        """Its shortcuts as the platform writes them."""
        native = QKeySequence.SequenceFormat.NativeText
        return tr("  or  ").join(sequence.toString(native) for sequence in self.keys)


@cache
def _sequence(name: str) -> QKeySequence:
    return QKeySequence(name, QKeySequence.SequenceFormat.PortableText)


def conflicts(commands: Sequence[Command]) -> tuple[str, ...]:
    """A sentence for every id or shortcut that two commands of one context share, and for every unreadable key."""
    said = []
    ids: set[str] = set()
    owners: dict[tuple[str, str], str] = {}
    for command in commands:
        if command.id in ids:
            said.append(tr("Two commands have the id {id}.").format(id=command.id))
        ids.add(command.id)
        for name, sequence in zip(command.shortcuts, command.keys, strict=True):
            place = (command.context, sequence.toString())
            if not sequence.toString():
                said.append(tr("The shortcut {name} of {id} is not a key.").format(name=name, id=command.id))
            elif place in owners:
                said.append(
                    tr("{owners} and {id} share the shortcut {name} in context {context}.").format(
                        owners=owners[place], id=command.id, name=name, context=command.context
                    )
                )
            owners[place] = command.id
    return tuple(said)
