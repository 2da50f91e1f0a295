"""A completion read as a conversation: who speaks, what a tool receives and returns, and what the loss counts."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator

import pytest
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QApplication

from app.theme.tokens import DARK, LIGHT, Theme
from app.trainers.panel_rows import COMPLETIONS
from app.trainers.panels.completions.conversation import LEGEND, PARTLY, SEEN, UNSEEN, by_mask, format_of, passages
from app.trainers.panels.completions.panel import CompletionsPanel
from app.trainers.panels.completions.rows import COLUMNS, Filter, batch_of
from app.trainers.recorded_run import RecordedRun
from app.workspace.workspace import Workspace
from grpo_core.config import Settings
from grpo_core.foreign.trajectory import Trajectory, Turn
from grpo_core.record import Origin
from grpo_core.trainers.importers import open_source
from tests.core.steps import random_step
from tests.core.trainers.sources import AGENT

KEYS = [column.key for column in COLUMNS]


@pytest.fixture
def panel(qapp: QApplication) -> Iterator[CompletionsPanel]:
    workspace = Workspace(Settings(), LIGHT)
    workspace.activate(RecordedRun(open_source(AGENT)))
    panel = COMPLETIONS.make(workspace)
    panel.resize(900, 400)
    panel.draw(workspace.view)
    yield panel
    workspace.close()
    panel.deleteLater()


def looks(turn: Turn) -> list[str]:
    """Return the styles of the text and the calls in a turn."""
    parts, first = passages(None, None, Trajectory(prompt=(), turns=(turn,)))
    return [part.look for part in parts[first + 2 :] if part.look in (SEEN, PARTLY, UNSEEN, "plain") and part.text]


def read(panel: CompletionsPanel, row: int) -> str:
    panel.workspace.select(row=row)
    panel.draw(panel.workspace.view)
    return panel.here.text.toPlainText()


def behind(panel: CompletionsPanel, words: str) -> str:
    """Return the background colour of the words where they first appear."""
    document = panel.here.text.document()
    cursor = document.find(words, document.find("Completion"))
    assert not cursor.isNull(), words
    inside = QTextCursor(document)
    inside.setPosition(cursor.selectionStart() + 1)
    return inside.charFormat().background().color().name()


def test_each_turn_says_who_spoke_what_was_called_with_what_and_what_came_back(panel: CompletionsPanel) -> None:
    shown = read(panel, 1).splitlines()
    for line in (
        "system · 6 tokens, not in the loss",
        "(thinking) A term: the tool knows it.",
        "assistant · 12 tokens, 9 in the loss · 1.5 s · A −0.750 · H 0.500 · 0.020 nats from the sampler",
        '→ calculator({"term": "17*23+"})',
        "Error: the term ends with an operator.",
        "End: the model ended it",
        "tool: calculator · looks like an error · 9 tokens, not in the loss · 0.5 s",
        "Rewards: right 0.000 × 1, brief 0.500 × 0.25",
        "Environment: tool_calls 2.000, seconds_in_tool 1.500",
    ):
        assert line in shown, line


def test_the_mask_is_drawn_behind_the_words_that_the_loss_counts(panel: CompletionsPanel) -> None:
    read(panel, 0)
    assert not panel.here.legend.isHidden() and [look for look, _ in LEGEND] == [SEEN, PARTLY, UNSEEN]
    seen = format_of(SEEN, LIGHT).background().color().name()
    assert behind(panel, "→ calculator") == behind(panel, "(thinking)") == seen
    assert behind(panel, "391") != seen, "the first 391 of the completion is the tool's"


def test_the_mask_follows_the_theme(panel: CompletionsPanel) -> None:
    read(panel, 0)
    panel.workspace.set_look(DARK, 1.0)
    panel.draw(panel.workspace.view)
    assert behind(panel, "→ calculator") == format_of(SEEN, DARK).background().color().name()


@pytest.mark.parametrize(
    ("numbers", "look"),
    [
        ({"tokens": 9, "body": 5, "in_loss": 5}, SEEN),
        ({"tokens": 9, "body": 5, "in_loss": 2}, PARTLY),
        ({"tokens": 9, "body": 5, "in_loss": 0}, UNSEEN),
        ({}, "plain"),
    ],
)
def test_a_text_has_the_look_of_what_the_loss_counts_of_it(numbers: dict[str, int], look: str) -> None:
    assert looks(Turn(role="tool", text="word", **numbers)) == [look]  # type: ignore[arg-type]


def test_without_tokens_no_mask_is_drawn_and_no_legend(qapp: QApplication, panel: CompletionsPanel) -> None:
    bare = Trajectory(prompt=(), turns=(Turn(role="assistant", text="word"),))
    panel.here.show_text(LIGHT, 1.0, "", None, "word", trajectory=bare)
    assert panel.here.legend.isHidden()


def test_a_branch_says_that_its_first_turns_are_counted_elsewhere(panel: CompletionsPanel) -> None:
    assert "The first 2 turns belong to an earlier branch" in read(panel, 4)
    assert "to an earlier branch" not in read(panel, 3)


def test_turns_tools_and_errors_are_columns_to_filter_by(panel: CompletionsPanel) -> None:
    batch = batch_of(panel.workspace.view)
    assert batch is not None
    assert [row[KEYS.index("tools")] for row in batch.cells[:3]] == [1, 2, 1]
    assert batch.listed(Filter(column="errors", low=1)) == [1, 6, 8]
    assert batch.listed(Filter(column="turns", low=3)) == [1, 6]
    assert not panel.table.isColumnHidden(KEYS.index("turns")) and panel.table.isColumnHidden(KEYS.index("kl"))


def test_a_run_without_turns_has_no_such_columns(qapp: QApplication) -> None:
    workspace = Workspace(Settings(), LIGHT)
    workspace.activate(RecordedRun(open_source(AGENT.parents[1] / "verl")))
    panel = COMPLETIONS.make(workspace)
    panel.resize(1400, 400)
    panel.draw(workspace.view)
    assert all(panel.table.isColumnHidden(KEYS.index(key)) for key in ("turns", "tools", "errors"))
    workspace.close()
    panel.deleteLater()


def test_a_search_reaches_the_arguments_of_a_call(panel: CompletionsPanel) -> None:
    panel.search.setText('17*23+"')
    panel.draw(panel.workspace.view)
    assert panel.table.table.rowCount() == 1 and len(panel.here.text.extraSelections()) == 1


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
def test_the_looks_are_told_apart_without_colour_by_the_words_above_each_turn(theme: Theme) -> None:
    turns = (
        Turn(role="assistant", text="a", tokens=3, body=2, in_loss=2),
        Turn(role="tool", text="b", tokens=3, body=2, in_loss=0),
    )
    parts, first = passages(None, None, Trajectory(prompt=(), turns=turns))
    facts = [part.text for part in parts[first:] if "tokens" in part.text]
    assert facts == [" · 3 tokens, 2 in the loss", " · 3 tokens, not in the loss"]
    assert format_of(SEEN, theme).background() != format_of(UNSEEN, theme).background()


def test_stretches_of_a_recorded_steps_tokens_are_those_of_its_mask() -> None:
    step = random_step(1, prompts=1, tokens=6)
    present = step.mask.copy()
    present[0] = True
    mask = present.copy()
    mask[0] = [True, True, False, False, True, True]
    step = dataclasses.replace(step, mask=mask, present=present)
    origin = Origin(settings=Settings(), vocabulary=tuple("abcdefghijklmnop"), prompts=())
    stretches = by_mask(step, 0, origin)
    assert [(turn.role, turn.tokens, turn.in_loss) for turn in stretches] == [
        ("tokens 1 to 2", 2, 2),
        ("tokens 3 to 4", 2, 0),
        ("tokens 5 to 6", 2, 2),
    ]
    assert "".join(turn.text for turn in stretches) == "".join("abcdefghijklmnop"[t] for t in step.tokens[0])
    assert by_mask(step, 1, origin) == []


def test_a_long_conversation_is_written_once_and_not_at_every_frame(panel: CompletionsPanel) -> None:
    read(panel, 0)
    revision = panel.here.text.document().revision()
    panel.draw(panel.workspace.view)
    assert panel.here.text.document().revision() == revision


def test_what_a_tool_gives_back_is_shown_letter_by_letter(panel: CompletionsPanel) -> None:
    hostile = json.dumps([{"role": "tool", "content": "<b>bold</b>"}, {"role": "user", "content": "<img src=x>"}])
    panel.here.show_text(LIGHT, 1.0, "", None, hostile)
    assert "<b>bold</b>" in panel.here.text.toPlainText() and "<img src=x>" in panel.here.text.toPlainText()
