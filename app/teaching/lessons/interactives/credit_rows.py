"""Rows of a group in the lesson on credit: right answers first, with notes next to each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from app.token_grid.cells import Note
from app.token_grid.grid import TokenRows
from app.token_grid.rows import rows_of
from app.token_grid.terms import marked
from app.token_grid.tints import Tint
from app.workspace.step_view import StepView, advantage_of
from grpo_core.explain import Quantity
from grpo_core.reductions import REDUCTIONS
from grpo_core.text import tr

TICK = "✓"
EITHER = " / "
"""Separator between the two meanings of an action in the length toy: as the answer, and after it."""


def laid_out(view: StepView, group: int, what: str, tint: Tint, values: np.ndarray | None) -> TokenRows:
    """Return the completions of ``group`` with notes of kind ``what``, best first, and shortest first among equals."""
    rows, step = rows_of(view, group, tint, values), view.step
    assert step is not None
    reward, count = step.rewards[rows.index], step.mask[rows.index].sum(axis=-1)
    order = np.lexsort((rows.index, count, -reward))
    notes = {"ledger": _ledger, "critic": _two}.get(what)
    index = rows.index[order]
    return TokenRows(
        index=index,
        texts=[_words(rows.texts[n]) for n in order],
        share=rows.share[order],
        signed=rows.signed,
        clipped=rows.clipped[order],
        notes=[
            _plain(rows.notes[n], what) if notes is None else notes(view, int(row))
            for n, row in zip(order, index, strict=True)
        ],
        dead=rows.dead and what != "plain",
        tip=lambda n, token: rows.tip(int(order[n]), token),
    )


def _words(texts: list[str]) -> list[str]:
    """Return the meaning of each token at its position.

    In the length toy, an action is first an answer, and then continues or stops.
    """
    parts = [text.split(EITHER) for text in texts]
    return [part[min(place, len(part) - 1)] for place, part in enumerate(parts)]


def _plain(notes: list[Note], what: str) -> list[Note]:
    """Return the inspector's notes without the ratio, and also without the advantage unless the push is shown."""
    return notes[:-2] if what == "plain" else notes[:-1]


def _colour(value: float) -> str:
    return "push_up" if value > 0 else "push_down" if value < 0 else "muted"


def _ledger(view: StepView, row: int) -> list[Note]:
    """Return notes about the advantage, the divisor of the loss reduction, and the resulting push on each token."""
    numbers, objective = view.numbers, view.objective
    assert numbers is not None and view.gradient is not None
    advantage, push = advantage_of(view, row) or 0.0, -float(view.gradient[row, 0])
    size = f"{numbers[Quantity('denominator', passed=view.passed, row=row)]:g}"
    reduction, below = REDUCTIONS[objective.reduction], None
    if reduction.by_length:
        below = int(numbers[Quantity("tokens", row=row)])
    elif reduction.by_constant:
        below = objective.max_tokens
    divided = f"÷ {size}" if below is None else f"÷ ({below} · {size})"
    return [
        (f"A {marked(advantage)}", _colour(advantage)),
        (divided, "text"),
        (f"= {_small(push)}", _colour(push)),
    ]


def _small(value: float) -> str:
    glyph = "▲" if value > 0 else "▼" if value < 0 else "·"
    return f"{glyph} {abs(value):.4f}"


def first_and_rest(view: StepView, row: int) -> tuple[float, float]:
    """Return the advantage of a completion's first token and the mean of those after it, NaN if there are none."""
    assert view.step is not None
    places = np.flatnonzero(view.step.mask[row])
    values = [advantage_of(view, row, int(t)) or 0.0 for t in places]
    return values[0], float(np.mean(values[1:])) if len(values) > 1 else float("nan")


def _two(view: StepView, row: int) -> list[Note]:
    """Return notes with the advantages of the answer and of the last token."""
    assert view.step is not None
    places = np.flatnonzero(view.step.mask[row])
    first, last = (advantage_of(view, row, int(token)) or 0.0 for token in (places[0], places[-1]))
    return [
        (tr("answer {first}").format(first=marked(first)), _colour(round(first, 3))),
        (tr("last {last}").format(last=marked(last)), _colour(round(last, 3))),
    ]


def judged(view: StepView, group: int, tint: Tint, values: np.ndarray | None) -> TokenRows:
    """Return the completions of ``group``, best first, with a tick at every rewarded step.

    The notes are the reward and the advantage or, if individual steps are rewarded, the advantages of the first and
    the last token.
    """
    rows, step = laid_out(view, group, "push", tint, values), view.step
    assert step is not None and view.advantage is not None
    paid = np.zeros(step.mask.shape, dtype=bool) if step.step_rewards is None else step.step_rewards > 0
    notes: list[list[Note]] = []
    for row in map(int, rows.index):
        whole = view.advantage.ndim == 1
        advantages = [advantage_of(view, row, token) or 0.0 for token in ([0] if whole else [0, -1])]
        paid_whole: list[Note] = [(f"R {step.rewards[row]:.3f}", "reward")] if whole else []
        notes.append([*paid_whole, *((marked(a), _colour(a)) for a in advantages)])
    texts = [
        [f"{word}{TICK if paid[row, token] else ' '}" for token, word in enumerate(words)]
        for row, words in zip(rows.index, rows.texts, strict=True)
    ]
    return replace(rows, texts=texts, notes=notes)
