"""The rows of one group for the grid: tokens, tints, and the notes next to each completion."""

from __future__ import annotations

import numpy as np

from app.plotting.numbers import shown
from app.token_grid.cells import Note, token_text
from app.token_grid.grid import TokenRows
from app.token_grid.terms import marked
from app.token_grid.tints import Tint
from app.token_grid.token_film import advantage_bars
from app.workspace import answers
from app.workspace.step_view import StepView, advantage_of
from grpo_core.text import tr

AFTER_SCORING = 2
"""Number of a completion's final notes, which appear after its reward: its advantage and the range of its ratio."""


def rows_of(
    view: StepView, group: int, tint: Tint, values: np.ndarray | None, *, limit: float | None = None
) -> TokenRows:
    """Return the completions of ``group`` as rows, tinted by ``values`` (B, T) if there are any.

    ``limit`` is the value of full tint, by default the tint's own.
    """
    step, terms, words = view.step, view.terms, view.origin.vocabulary
    assert step is not None and terms is not None
    index = np.flatnonzero(step.group == group)
    share = (
        np.zeros((len(index), step.tokens.shape[1]))
        if values is None
        else values[index] / (limit or view.derived(tint.limit))
    )
    texts = [[token_text(words, t) for t in step.tokens[i][step.there[i]].tolist()] for i in index]
    right = answers.right(step, view.origin)

    def tip(n: int, token: int | None) -> str:
        row = int(index[n])
        if token is not None:
            return _of_token(view, row, token, texts[n][token], tint, values)
        words = answers.words(step, row, view.origin)
        return tr("Completion {row}: {words}. Reward {reward}.").format(
            row=row + 1, words=words or tr("reward"), reward=shown(float(step.rewards[row]))
        )

    notes = [_notes(view, int(i), right) for i in index]
    return TokenRows(
        index=index,
        texts=texts,
        share=np.nan_to_num(share),
        signed=tint.signed,
        clipped=terms.clipped[index],
        notes=notes,
        scored=max(len(notes[0]) - AFTER_SCORING, 0) if notes else 0,
        bars=advantage_bars(view, group),
        counts=None if step.present is None else [step.mask[i][step.there[i]].tolist() for i in index],
        dead=view.dead is not None and bool(view.dead[group]),
        tip=tip,
    )


def _of_token(view: StepView, row: int, token: int, text: str, tint: Tint, values: np.ndarray | None) -> str:
    """Return the tooltip of a token: its tint as a number, and the update's effect on its log-probability."""
    assert view.step is not None
    if not view.step.mask[row, token]:
        return tr("“{text}”: not in the loss. log π {before}.").format(
            text=text, before=shown(float(view.step.logp[0, row, token]))
        )
    before = float(view.step.logp[0, row, token])
    tinted = "" if values is None else f"{tint.title} {shown(float(values[row, token]))}. "
    if view.logp_after is None:
        return tr("“{text}”: {tinted}log π {before}.").format(text=text, tinted=tinted, before=shown(before))
    now = float(view.logp_after[row, token])
    return tr("“{text}”: {tinted}log π {before} → {now}.").format(
        text=text, tinted=tinted, before=shown(before), now=shown(now)
    )


def _notes(view: StepView, row: int, right: np.ndarray | None) -> list[Note]:
    """Return the notes of a completion: right or wrong, the reward unless it says the same, the advantage, and the
    range of the ratio.
    """
    step, terms = view.step, view.terms
    assert step is not None and terms is not None
    reward, advantage = float(step.rewards[row]), advantage_of(view, row) or 0.0
    ratios = terms.ratio[row][step.mask[row]]
    low, high = (float(ratios.min()), float(ratios.max())) if len(ratios) else (1.0, 1.0)
    span = f"r {shown(low)}" if high - low < 5e-4 else f"r {shown(low, 2)}–{shown(high, 2)}"
    notes: list[Note] = []
    if right is not None:
        notes.append((tr("◆ right"), "text") if right[row] else (tr("◇ wrong"), "muted"))
    if right is None or not np.array_equal(step.rewards, right):
        notes.append((f"R {shown(reward)}" if reward == reward else "unscored", "reward"))
    sign = "push_up" if advantage > 0 else "push_down" if advantage < 0 else "muted"
    return [*notes, (marked(advantage), sign), (span, "muted")]
