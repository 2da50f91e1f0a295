"""A command does what its name promises. One that is on or off returns to its state when it is run a second time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from app.application import Application
from app.language import START_AGAIN
from tests.app.conftest import Driver

pytestmark = pytest.mark.one_window

EFFECTS: dict[str, tuple[Callable[[Application], object], object]] = {
    "zoom_in": (lambda p: p.look.scale, 1.1),
    "zoom_out": (lambda p: p.look.scale, 0.9),
    "theme.projector": (lambda p: p.look.choice, "projector"),
    "language.en": (lambda p: p.preferences.current.language, "en"),
    "layout.Compare": (lambda p: p.preferences.current.layout, "Compare"),
    "layout.Mine": (lambda p: p.preferences.current.layout, "Mine"),
    "panel.glossary": (lambda p: p.window.docks["glossary"].isVisible(), True),
    "glossary": (lambda p: p.window.docks["glossary"].isVisible(), True),
    "references": (lambda p: p.window.docks["references"].isVisible(), True),
    "lessons": (lambda p: p.window.docks["lesson"].isVisible(), True),
    "breakpoints": (lambda p: p.window.docks["breakpoints"].isVisible(), True),
    "queue": (lambda p: p.window.docks["queue"].isVisible(), True),
    "what_if": (lambda p: p.window.docks["what_if"].isVisible(), True),
    "reduced_motion": (lambda p: (p.preferences.current.reduced_motion, p.player.staged), (True, False)),
    "full_screen": (lambda p: p.window.isFullScreen(), True),
    "speaker": (lambda p: p.part("teaching").presenter.speaker.isVisible(), True),
    "present.blank": (lambda p: p.part("teaching").presenter.blank.isHidden(), False),
    "present.ring": (lambda p: p.part("teaching").presenter.ring.on, True),
    "palette": (lambda p: p.palette.isVisible(), True),
    "shortcut_sheet": (lambda p: p.sheet.isVisible(), True),
    "new_run": (lambda p: len(p.workspace.runs), 2),
    "branch": (lambda p: p.workspace.run.branched_at, 3),  # type: ignore[union-attr]
    "step_back": (lambda p: p.workspace.cursor.step, 2),
    "present.step_back": (lambda p: p.workspace.cursor.step, 2),
    "go_start": (lambda p: p.workspace.cursor.step, 0),
    "explain": (lambda p: p.workspace.quantity is not None, True),
    "faster": (lambda p: p.player.speed, 10.0),
    "slower": (lambda p: p.player.speed, 2.0),
}
SWITCHES = {"full_screen", "reduced_motion", "speaker", "present.blank", "present.ring"}
"""Commands that undo their effect when run again."""
ALIKE = ("zoom_out", "language.en", "references", "lessons", "breakpoints", "queue", "present.step_back", "slower")
"""Commands that are like one above: the long tests run them."""


@pytest.fixture
def program(shared: Driver) -> Iterator[Application]:
    """A program at update 3, otherwise as at its start except for what it has already drawn."""
    program = shared.program
    program.layouts.choose("Bandit")
    program.look.set("light", 1.0)
    program.player.set_speed(None)
    shared.run(3)
    program.player.set_speed(5.0)
    program.layout_files.save(program.window, "Mine")
    program.layouts.changed.emit()
    yield program
    program.palette.hide()
    program.sheet.hide()


@pytest.mark.parametrize("id", [pytest.param(id, marks=[pytest.mark.long] * (id in ALIKE)) for id in EFFECTS])
def test_a_command_does_what_its_name_promises(shared: Driver, program: Application, id: str) -> None:
    read, after = EFFECTS[id]
    action, before = program.actions[id], read(program)
    assert before != after
    action.trigger()
    assert read(program) == after
    shared.settle()
    if id in SWITCHES:
        action.trigger()
        assert read(program) == before


@pytest.mark.own_window
def test_another_language_is_offered_with_a_new_start(driver: Driver) -> None:
    program = driver.program
    program.actions["language.zh_CN"].trigger()
    assert program.actions["language.zh_CN"].text() == "简体中文"
    (line,) = [line for line in program.messages.lines if "another language" in line.message.text]
    line.message.actions[0].run()
    assert program.window.property(START_AGAIN) is True
    driver.qtbot.waitUntil(lambda: program.window.may_close)
