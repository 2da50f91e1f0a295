"""A completion read as a conversation: who speaks, what a tool receives and returns, and what the loss counts;
completions by prompt, and a prompt's rollouts as a tree.
"""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from PySide6.QtGui import QTextCursor

from app.theme.tokens import DARK, LIGHT, Theme
from app.trainers.panel_rows import COMPLETIONS
from app.trainers.panels.completions.conversation import LEGEND, PARTLY, SEEN, UNSEEN, by_mask, format_of, passages
from app.trainers.panels.completions.panel import CompletionsPanel
from app.trainers.panels.completions.rows import BARS, COLUMNS, MOST_BARS, PROMPTS, Filter, prompts_of, strip
from grpo_core.config import Settings
from grpo_core.foreign.trajectory import Trajectory, Turn
from grpo_core.record import Origin
from tests.app.trainers.panels.conftest import Drawn, shown_batch
from tests.core.steps import random_step
from tests.core.trainers.sources import AGENT

KEYS, OF_PROMPTS = [column.key for column in COLUMNS], [column.key for column in PROMPTS]


@pytest.fixture
def panel(drawn: Drawn) -> CompletionsPanel:
    return drawn(COMPLETIONS, AGENT)


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


def test_without_tokens_no_mask_is_drawn_and_no_legend(panel: CompletionsPanel) -> None:
    bare = Trajectory(prompt=(), turns=(Turn(role="assistant", text="word"),))
    panel.here.show_text(LIGHT, 1.0, "", None, "word", trajectory=bare)
    assert panel.here.legend.isHidden()


def test_a_branch_says_that_its_first_turns_are_counted_elsewhere(panel: CompletionsPanel) -> None:
    assert "The first 2 turns belong to an earlier branch" in read(panel, 4)
    assert "to an earlier branch" not in read(panel, 3)


def test_turns_tools_and_errors_are_columns_to_filter_by(panel: CompletionsPanel) -> None:
    batch = shown_batch(panel)
    assert [row[KEYS.index("tools")] for row in batch.cells[:3]] == [1, 2, 1]
    assert batch.listed(Filter(column="errors", low=1)) == [1, 6, 8]
    assert batch.listed(Filter(column="turns", low=3)) == [1, 6]
    assert not panel.table.isColumnHidden(KEYS.index("turns")) and panel.table.isColumnHidden(KEYS.index("kl"))


def test_a_run_without_turns_has_no_such_columns(drawn: Drawn) -> None:
    panel = drawn(COMPLETIONS, AGENT.parents[1] / "verl", width=1400)
    assert all(panel.table.isColumnHidden(KEYS.index(key)) for key in ("turns", "tools", "errors"))


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


def test_a_prompt_is_a_row_with_what_its_completions_have_in_common(panel: CompletionsPanel) -> None:
    batch = shown_batch(panel)
    found = prompts_of(batch)
    table = panel.workspace.run.table(panel.workspace.view.cursor.step)  # type: ignore[union-attr]
    for number, rows, cells in zip(found.groups, found.rows, found.cells, strict=True):
        told = dict(zip(OF_PROMPTS, cells, strict=True))
        paid = table.rewards[list(rows)]
        assert set(table.group[list(rows)]) == {number - 1} and told["count"] == len(rows) == len(str(told["strip"]))
        assert told["reward"] == pytest.approx(paid.mean()) and told["spread"] == pytest.approx(paid.std(ddof=1))
        turns = [table.trajectories[row] for row in rows]
        assert told["turns"] == pytest.approx(np.mean([one.spoken for one in turns]))
        assert told["errors"] == sum(one.failures for one in turns)


def test_a_strip_has_a_bar_a_reward_and_a_dot_for_what_was_not_scored() -> None:
    assert strip(np.array([1.0, 0.0, np.nan, 0.5]), 0.0, 1.0) == f"{BARS[0]}{BARS[4]}{BARS[-1]}·"
    assert strip(np.array([2.0, 2.0]), 2.0, 2.0) == BARS[0] * 2
    assert len(strip(np.linspace(0, 1, 500), 0.0, 1.0)) == MOST_BARS


def test_a_prompt_that_is_opened_lists_its_completions_alone(panel: CompletionsPanel) -> None:
    panel.by_prompt.setChecked(True)
    count = panel.table.table.rowCount()
    assert panel.prompts.isVisibleTo(panel) and not panel.table.isVisibleTo(panel)
    panel.prompts.activated_cell.emit(1, "strip")
    assert not panel.by_prompt.isChecked() and panel.filter.group == 2
    groups = {panel.table.table.value(place, 1) for place in range(panel.table.table.rowCount())}
    assert groups == {2} and 0 < panel.table.table.rowCount() < count
    panel.by_prompt.setChecked(True)
    panel.by_prompt.setChecked(False)
    assert panel.table.table.rowCount() == count, "without a prompt chosen all are listed again"


def test_prompts_are_filtered_by_their_completions(panel: CompletionsPanel) -> None:
    batch = shown_batch(panel)
    found = prompts_of(batch)
    assert found.listed(batch, Filter()) == list(range(len(found.groups)))
    assert found.listed(batch, Filter(text="no completion says this")) == []
    few = found.listed(batch, Filter(column="tools", low=2))
    assert all(any(batch.trajectories[row].called >= 2 for row in found.rows[n]) for n in few)  # type: ignore[union-attr]


def test_the_tree_has_the_common_prompt_once_and_every_rollout(panel: CompletionsPanel) -> None:
    panel.workspace.select(row=0)
    panel.tree.setChecked(True)
    panel.draw(panel.workspace.view)
    text = panel.here.text.toPlainText()
    batch = shown_batch(panel)
    rows = prompts_of(batch).rows[0]
    assert text.count("Use the calculator.") == 1
    assert all(f"#{row + 1}: R " in text for row in rows)
    panel.tree.setChecked(False)
    panel.draw(panel.workspace.view)
    assert "Rollouts of the prompt" not in panel.here.text.toPlainText()
