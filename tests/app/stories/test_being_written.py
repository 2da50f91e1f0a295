"""During a long update, the completions of the displayed group grow on screen."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from app.panel_registry import TOKEN_INSPECTOR
from app.panels.tokens.being_written import BeingWritten
from app.panels.tokens.panel import TokenInspectorPanel
from app.training import host
from app.workspace.answers import on_one_line
from grpo_core.config import language_settings
from tests.app.conftest import Driver
from tests.app.stories.hands import panel
from tests.app.training import mains

pytestmark = [pytest.mark.one_window, pytest.mark.own_window]

LEARNS = mains.LONGEST + 1
"""Token number that means: all are sampled, and the update is learning."""


class Writer:
    """A language model's run whose update waits at the token given by a test."""

    def __init__(self, driver: Driver, note: Path) -> None:
        self.driver, self._note = driver, note

    @property
    def inspector(self) -> TokenInspectorPanel:
        found = panel(self.driver, TOKEN_INSPECTOR.id)
        assert isinstance(found, TokenInspectorPanel)
        return found

    @property
    def strip(self) -> BeingWritten:
        return self.inspector.being_written

    @property
    def lines(self) -> tuple[str, ...]:
        return () if self.strip.writing is None else self.strip.writing.lines

    @property
    def caption(self) -> str:
        return "" if self.strip.writing is None else self.strip.writing.caption

    def begin(self, token: int) -> None:
        """Begin an update that waits at that token, and wait until the window shows it."""
        self._note.write_text(str(token), encoding="utf-8")
        self.driver.program.workspace.follow()
        self.driver.program.player.step()
        self.go_to(token)

    def go_to(self, token: int) -> None:
        """Make the update in progress sample that token, and wait until the window shows it."""
        self._note.write_text(str(token), encoding="utf-8")
        words = "learning from" if token == LEARNS else f"token {token} of"
        self.driver.qtbot.waitUntil(lambda: words in self.caption)

    def finish(self) -> None:
        """Let every update run to completion from now on."""
        self._note.unlink()

    def recorded(self, group: int) -> tuple[str, ...]:
        """Return the completions of the displayed update."""
        view = self.driver.program.workspace.view
        step = view.step.step
        assert step is not None
        rows = [row for row, of in enumerate(step.group) if of == group]
        return tuple(on_one_line(step.tokens[row][step.mask[row]], view.run.origin) for row in rows)


@pytest.fixture
def writer(driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Writer:
    driver.run(1)
    note = tmp_path / "note"
    note.touch()
    monkeypatch.setenv(mains.NOTED, str(note))
    monkeypatch.setattr(host, "serve", mains.serve_talking)
    driver.program.runs.new_run_of(language_settings())
    driver.program.layouts.choose("Language model")
    driver.settle()
    return Writer(driver, note)


def test_completions_grow_token_by_token_and_settle_where_an_updates_completions_stand(writer: Writer) -> None:
    driver = writer.driver
    assert writer.strip.isHidden()
    writer.begin(1)
    assert writer.strip.isVisible() and set(writer.lines) == {""}
    assert "first update is being computed" in writer.inspector.empty.text()
    shown = [writer.lines]
    for token in (3, 6, LEARNS):
        writer.go_to(token)
        shown.append(writer.lines)
    for before, after in pairwise(shown):
        assert after != before and all(new.startswith(old) for old, new in zip(before, after, strict=True))
    assert writer.strip.writing is not None and all(writer.strip.writing.ended)
    assert writer.caption.startswith("Update 1 ")
    assert writer.strip.accessibleDescription().splitlines() == [writer.caption, *writer.lines]
    writer.finish()
    driver.rest()
    assert driver.head == 1
    assert writer.recorded(0) == shown[-1], "what was written is what the update holds"
    assert writer.strip.isHidden() and not writer.lines


def test_the_completions_above_keep_their_place_while_the_next_update_is_written(writer: Writer) -> None:
    driver = writer.driver
    writer.finish()
    driver.run(1)
    inspector = writer.inspector
    whole = inspector.grid.viewport().height()

    def arranged() -> list[object]:
        above = (inspector.choices, inspector.prompt_line, inspector.sentence)
        return [inspector.legend.isHidden(), *(widget.geometry().getRect() for widget in above)]

    before = arranged()
    writer.begin(3)
    assert writer.strip.isVisible() and not writer.strip.box(0).isEmpty()
    assert arranged() == before, "nothing above jumps"
    assert inspector.grid.viewport().height() >= 0.6 * whole, "most completions stay in sight"
    writer.finish()
    driver.rest()


@pytest.mark.long
def test_they_are_those_of_the_group_that_is_looked_at_also_while_the_update_learns(writer: Writer) -> None:
    driver = writer.driver
    writer.finish()
    driver.run(1)
    step = driver.shown_step
    assert len(set(step.group.tolist())) > 1
    writer.inspector.choices.prompt.activated.emit(0)
    driver.settle()
    writer.begin(LEARNS)
    first = writer.caption, writer.lines
    writer.inspector.choices.prompt.activated.emit(1)
    driver.qtbot.waitUntil(lambda: writer.lines != first[1])
    assert writer.caption != first[0], "another group, another prompt"
    other = writer.lines
    writer.finish()
    driver.rest()
    assert (writer.recorded(0), writer.recorded(1)) == (first[1], other)


@pytest.mark.long
def test_between_two_updates_the_place_is_kept_and_nothing_stands_there(writer: Writer) -> None:
    driver = writer.driver
    writer.finish()
    driver.run(1)
    writer.begin(3)
    driver.program.player.run()
    writer.go_to(9)
    height = writer.strip.height()
    writer.finish()
    driver.qtbot.waitUntil(lambda: driver.head >= 2 and writer.strip.writing is None)
    assert writer.strip.isVisible() and writer.strip.height() == height
    assert writer.strip.accessibleDescription() == ""
    driver.program.player.pause()
    driver.rest()
    assert writer.strip.isHidden()


@pytest.mark.quick_cases("closed")
@pytest.mark.parametrize("leave", ["another run", "closed"])
def test_nothing_stale_stays_where_the_update_is_given_up_or_left(leave: str, writer: Writer) -> None:
    driver, program = writer.driver, writer.driver.program
    writer.begin(9)
    if leave == "another run":
        program.run_manager.show(program.workspace.runs[0])
    else:
        program.controller.close_run()
    driver.qtbot.waitUntil(lambda: writer.strip.isHidden())
    assert writer.strip.writing is None and writer.strip.accessibleDescription() == ""


def test_back_in_the_past_the_update_in_progress_goes_on_being_shown_by_its_number(writer: Writer) -> None:
    driver = writer.driver
    writer.finish()
    driver.run(2)
    writer.begin(4)
    driver.program.workspace.move_to(1)
    writer.go_to(9)
    assert driver.program.workspace.view.cursor.step == 1
    assert writer.caption.startswith("Update 3 is being written")
