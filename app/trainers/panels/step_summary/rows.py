"""An update's groups and leading tokens as the rows of two tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.plotting.numbers import shown
from app.plotting.table_model import Column
from app.trainers.recorded_run import RecordedRun
from app.workspace.step_view import StepView
from app.workspace.view import View
from grpo_core import recompute
from grpo_core.leading import CONTRIBUTIONS, Group, Leading, groups_of, leading, of_groups, of_leading
from grpo_core.text import tr
from grpo_core.texts import question_text

PREVIEW = 80
"""Maximum number of characters of a prompt shown in the table."""

GROUPS = (
    Column("group", "#", chars=3, decimals=0, help=tr("Number of the prompt.")),
    Column("signal", tr("Signal"), chars=5.5, kind="chip", help=tr("“none”: every advantage of the group is 0.")),
    Column("rewards", tr("Rewards"), chars=14, kind="text", help=tr("The lowest and the highest reward.")),
    Column("prompt", tr("Prompt"), chars=8, kind="text", help=tr("How the prompt begins.")),
)
TOKENS = (
    Column("row", "#", chars=4, decimals=0, help=tr("Number of the completion.")),
    Column("token", tr("Token"), chars=5, decimals=0, help=tr("Place of the token within it.")),
    Column("value", tr("Adds"), chars=11, kind="push", decimals=4, help=tr("What it adds, including its weight.")),
    Column("share", tr("Share"), chars=6, kind="text",
           help=tr("Its share of the sum of what all tokens add, ignoring signs.")),
    Column("text", tr("Text"), chars=8, kind="mono", help=tr("What the token says.")),
)  # fmt: skip # table, one row per line


@dataclass(frozen=True, kw_only=True, eq=False)
class Summary:
    """The groups of an update.

    Attributes:
        groups: those without a signal first.
        groups_sentence: a sentence on how many groups have no signal.
        group_rows: rows with the columns of :data:`GROUPS`.
    """

    groups: tuple[Group, ...]
    groups_sentence: str
    group_rows: list[list[object]]


def summary_of(view: View) -> Summary | None:
    """Return the groups of the update shown, or None if no groups are recorded.

    Raises:
        RunFileError: a recorded run cannot be read.
    """
    step = view.step.step
    if step is not None:
        advantage = view.step.advantage
        assert advantage is not None
        pushed = (step.mask & (advantage if advantage.ndim > 1 else advantage[:, None]).astype(bool)).any(axis=-1)
        prompts = {group: question_text(step, group, view.run.origin) for group in np.unique(step.group).tolist()}
        return _summary(groups_of(step.group, step.rewards, pushed), prompts)
    table = view.run.table(view.cursor.step) if isinstance(view.run, RecordedRun) else None
    if table is None:
        return None
    gained = None if table.advantage is None else np.nan_to_num(table.advantage).astype(bool)
    texts = {int(group): text or "" for group, text in zip(table.group, table.prompts, strict=True)}
    return _summary(groups_of(table.group, table.rewards, gained), texts)


def _summary(groups: Sequence[Group], prompts: dict[int, str]) -> Summary:
    rows: list[list[object]] = [
        [
            one.number + 1,
            tr("none", "signal") if one.silent else "",
            _ends(one),
            " ".join(prompts[one.number].split())[:PREVIEW],
        ]
        for one in groups
    ]
    return Summary(groups=tuple(groups), groups_sentence=of_groups(groups).words(), group_rows=rows)


def _ends(group: Group) -> str:
    if np.isnan(group.low):
        return tr("not scored")
    if group.low == group.high:
        return tr("all {reward}").format(reward=_short(group.low))
    return tr("{low} to {high}").format(low=_short(group.low), high=_short(group.high))


def _short(reward: float) -> str:
    return shown(reward, 0 if reward.is_integer() else 3)


@dataclass(frozen=True, kw_only=True, eq=False)
class TokenSummary:
    """The leading tokens of a pass.

    Attributes:
        found: their positions and contributions.
        sentence: a sentence on their share of the total.
        rows: rows with the columns of :data:`TOKENS`.
    """

    found: Leading
    sentence: str
    rows: list[list[object]]


def tokens_of(view: StepView, name: str) -> TokenSummary | None:
    """Return the tokens of the pass shown that contribute most to ``name``, or None if the record lacks it.

    ``name`` is a key of :data:`~grpo_core.leading.CONTRIBUTIONS`.
    """
    step, terms, gradient = view.step, view.terms, view.gradient
    if step is None or terms is None or gradient is None:
        return None
    values = CONTRIBUTIONS[name].of(step, terms, gradient)
    if values is None:
        return None
    used = recompute.used(step, view.passed)
    found, words = leading(values, used), view.origin.vocabulary
    rows: list[list[object]] = []
    for row, token, value, share in zip(found.rows, found.tokens, found.values, found.shares, strict=True):
        number = int(step.tokens[row, token])
        text = words[number] if 0 <= number < len(words) else "?"
        rows.append([int(row) + 1, int(token) + 1, float(value), f"{share:.1%}", text])
    return TokenSummary(found=found, sentence=of_leading(name, found).words(), rows=rows)
