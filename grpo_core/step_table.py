"""The table of a step's details, shared by window and terminal, with one row per sampled token (per sample on the
bandit).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from grpo_core import recompute
from grpo_core.deviations import DEVIATIONS
from grpo_core.evaluated_step import EvaluatedStep
from grpo_core.explain.quantity import Quantity
from grpo_core.record import Origin, Step
from grpo_core.text import tr
from grpo_core.texts import question_text


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of the step table.

    Attributes:
        name: the quantity's name in ``explain``; for columns without ``explained``, only a key.
        symbol: its symbol, empty if it has none.
        explained: whether its cells can be explained.
        decimals: number of decimals shown by default; None for words and integers.
    """

    name: str
    title: str
    help: str
    symbol: str = ""
    explained: bool = True
    decimals: int | None = 4


@dataclass(frozen=True)
class Row:
    """A row of the step table: one token of a completion.

    Attributes:
        row: the completion, counted from 0.
        token: its index in the completion, counted from 0.
        group: the prompt, counted from 0.
        cells: raw values in the order of :func:`columns`: numbers, words, booleans, None if empty.
    """

    row: int
    token: int
    group: int
    cells: tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class GroupRow:
    """Statistics of a group's rewards.

    Attributes:
        group: the prompt, counted from 0.
        size: number of its scored completions.
        mean, std: of the scored rewards; std with n − 1 unless the objective divides by n; NaN where undefined.
        dead: whether all rewards are equal.
        silent: whether every advantage is 0, so that the group has no signal.
    """

    group: int
    prompt: str
    size: int
    mean: float
    std: float
    dead: bool
    silent: bool


def _plain(name: str, title: str, help: str, symbol: str = "") -> Column:
    """Create a column of words or integers that are not explained."""
    return Column(name=name, title=title, help=help, symbol=symbol, explained=False, decimals=None)


_SAMPLE = _plain("sample", "#", tr("Number of the sample within the update."))
_PROMPT = _plain("prompt", tr("Prompt"), tr("The prompt; its samples form a group."))
_ACTION = _plain("action", tr("Action"), tr("The action that was sampled."), symbol="a")
_COMPLETION = _plain("completion", tr("Completion"), tr("The entire answer that contains the token."))
_PLACE = _plain("place", "t", tr("Place of the token within its completion."))
_TOKEN = _plain("token", tr("Token"), tr("The token that was sampled."))
_NUMBERS = (
    Column(name="reward", title=tr("Reward"), help=tr("The reward of the sample."), symbol="R"),
    Column(
        name="advantage",
        title=tr("Advantage"),
        help=tr("How much better it did than what it is compared with."),
        symbol="A",
    ),
    Column(
        name="ratio", title=tr("Ratio"), help=tr("Probability now divided by that under the old policy."), symbol="r"
    ),
    Column(
        name="clipped",
        title=tr("Clipped"),
        help=tr("Whether the clip stopped its push; for CISPO, whether its weight was capped."),
        decimals=None,
    ),
    Column(name="surrogate", title=tr("Surrogate"), help=tr("The term that is maximised, before the KL.")),
    Column(name="kl", title="KL", help=tr("The estimate of the distance from the reference policy."), symbol="KL"),
    Column(name="weight", title=tr("Weight"), help=tr("Its weight in the mean."), symbol="W"),
    Column(name="token_loss", title=tr("Loss"), help=tr("β KL − surrogate, before the weight.")),
    Column(
        name="gradient", title=tr("Gradient"), help=tr("Derivative of the loss with respect to its log-probability.")
    ),
)


def columns(step: Step) -> tuple[Column, ...]:
    """Return the columns. If completions have one token, the action replaces completion, position and token."""
    words = (_ACTION,) if step.mask.shape[-1] == 1 else (_COMPLETION, _PLACE, _TOKEN)
    return (_SAMPLE, _PROMPT, *words, *_NUMBERS)


def rows(numbers: EvaluatedStep, passed: int, *, origin: Origin | None = None, only: int | None = None) -> list[Row]:
    """Return the table rows of all real tokens of an update with their numbers in pass ``passed`` (0 = the first), in
    sampling order.

    Args:
        origin: provides the text of prompts and tokens; without it their numbers are shown.
        only: the completion whose tokens are returned; by default all.

    Raises:
        SettingsError: the objective needs something that the step lacks.
    """
    step = numbers.step
    if only is None:
        row, token = np.nonzero(step.mask)
    else:
        token = np.flatnonzero(step.mask[only])
        row = np.full(len(token), only)
    group = step.group[row]
    words = [_words(origin, "vocabulary", index) for index in step.tokens[row, token].tolist()]
    prompt_texts = {index: _prompt_of(step, index, origin) for index in set(group.tolist())}
    prompts = [prompt_texts[index] for index in group.tolist()]
    samples = (row + 1).tolist()
    if step.mask.shape[-1] == 1:
        lead: list[list[Any]] = [samples, prompts, words]
    else:
        lead = [samples, prompts, _completions(step, origin, row), (token + 1).tolist(), words]
    terms = numbers.terms(passed)
    others = {"reward": step.rewards, "advantage": numbers.advantage, "gradient": numbers.gradient(passed)}
    known = {column.name: getattr(terms, column.name, None) for column in _NUMBERS} | others
    values = [_picked(known[column.name], row, token) for column in _NUMBERS]
    cells = zip(*lead, *values, strict=True)
    return [Row(*place) for place in zip(row.tolist(), token.tolist(), group.tolist(), cells, strict=True)]


def address(row: Row, column: Column, passed: int) -> Quantity | None:
    """Return the quantity that explains a cell's number, or None for text."""
    return Quantity(column.name, passed=passed, row=row.row, token=row.token) if column.explained else None


def groups(step: Step, *, origin: Origin | None = None) -> list[GroupRow]:
    """Return the statistics of the groups of ``step``, in order."""
    table = recompute.grouped(step, step.rewards)
    dead = recompute.dead_groups(step).tolist()
    silent = recompute.silent_groups(step, recompute.advantage(step)).tolist()
    rows_of_groups = []
    for index, rewards in enumerate(table):
        scored = rewards[~np.isnan(rewards)]
        freedom = len(scored) - DEVIATIONS[step.settings.objective.std].ddof
        rows_of_groups.append(
            GroupRow(
                group=index,
                prompt=_prompt_of(step, index, origin),
                size=len(scored),
                mean=float(scored.mean()) if len(scored) else float("nan"),
                std=float(np.sqrt(((scored - scored.mean()) ** 2).sum() / freedom)) if freedom > 0 else float("nan"),
                dead=dead[index],
                silent=silent[index],
            )
        )
    return rows_of_groups


def _picked(values: np.ndarray | None, row: np.ndarray, token: np.ndarray) -> list[Any]:
    """Pick ``values`` (B,) or (B, T) at the given rows and tokens. Every entry is None if ``values`` is None."""
    if values is None:
        return [None] * len(row)
    picked: list[Any] = (values[row] if values.ndim == 1 else values[row, token]).tolist()
    return picked


def _completions(step: Step, origin: Origin | None, row: np.ndarray) -> list[str]:
    vocabulary = origin.vocabulary if origin is not None else ("10",)
    gap = (
        "" if all(len(word) == 1 for word in vocabulary) else " · " if any(" " in word for word in vocabulary) else " "
    )
    if step.completion_texts is not None:
        return [step.completion_texts[index] or "" for index in row.tolist()]
    texts = {
        index: gap.join(_words(origin, "vocabulary", token) for token in step.tokens[index][step.there[index]].tolist())
        for index in np.unique(row).tolist()
    }
    return [texts[index] for index in row.tolist()]


def _prompt_of(step: Step, group: int, origin: Origin | None) -> str:
    """Return the text of a group's prompt, or its number if the text is unknown."""
    texts_known = step.prompt_tokens is not None or step.prompt_texts is not None
    if origin is None or (not texts_known and group >= len(origin.prompts)):
        return str(group + 1)
    return question_text(step, group, origin)


def _words(origin: Origin | None, kind: str, index: int) -> str:
    """Return the text of a token or a prompt, or its number if the text is unknown."""
    known: tuple[str, ...] = () if origin is None else getattr(origin, kind)
    return known[index] if 0 <= index < len(known) else str(index + 1)
