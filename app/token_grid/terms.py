"""The rows of one group for the grid, and the details of one of its tokens: the numbers that make up its push."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from app.plotting.numbers import shown
from app.token_grid.cells import Note, token_text
from app.token_grid.grid import TokenRows
from app.token_grid.tints import Tint
from app.token_grid.token_film import advantage_bars
from app.workspace import answers
from app.workspace.step_view import StepView, advantage_of
from grpo_core import recompute
from grpo_core.config.value_names import worded
from grpo_core.explain import Quantity
from grpo_core.surrogates import SURROGATES, Path
from grpo_core.text import tr

Line = tuple[str, str, str, Quantity | None]
"""A line of the details: name, value, colour, and the quantity that explains it."""


def kl_share(view: StepView) -> np.ndarray | None:
    """Return the share of the batch's KL estimate due to each token, (B, T), or None if estimates cancel or are
    zero.
    """
    kl, total = None if view.terms is None else view.terms.kl, view.derived(_kl_total)
    return None if kl is None or total is None else np.asarray(kl / total)


def _kl_total(view: StepView) -> float | None:
    """Return the sum of the batch's KL estimates, or None if estimates cancel or are zero."""
    kl = None if view.terms is None else view.terms.kl
    if kl is None or float(kl.min(initial=0.0)) < 0 or not float(kl.sum()) > 0:
        return None
    return float(kl.sum())


def lines(view: StepView, row: int, token: int) -> list[Line]:
    """Return every term that contributes to the token's push, and the push's effect on the token's logit."""
    terms, step = view.terms, view.step
    if terms is None or step is None or view.gradient is None or not step.mask[row, token]:
        return []

    def door(name: str) -> Quantity:
        return Quantity(name=name, passed=view.passed, row=row, token=token)

    advantage = advantage_of(view, row, token) or 0.0
    push = -float(view.gradient[row, token])
    rest = -math.expm1(float(step.logp[view.passed, row, token]))
    branch = tr("clip: stopped") if bool(terms.clipped[row, token]) else _branch(view, float(terms.ratio[row, token]))
    lines: list[Line] = [
        (tr("Reward R"), shown(float(step.rewards[row])), "reward", door("reward")),
        (tr("Advantage A"), marked(advantage), colour_of(advantage), door("advantage")),
        (tr("Ratio r"), shown(float(terms.ratio[row, token])), "text", door("ratio")),
        *_of_sampler(view, row, token, door),
        (tr("Branch"), branch, "text", door("surrogate")),
        (tr("Surrogate"), shown(float(terms.surrogate[row, token])), "text", door("surrogate")),
        *_of_kl(view, row, token, door("kl")),
        (tr("Weight W"), f"{terms.weight[row, token]:.4g}", "text", door("weight")),
        (tr("Token loss"), shown(float(terms.token_loss[row, token])), "text", door("token_loss")),
        (tr("Push on log π"), marked(push), colour_of(push), door("gradient")),
        ("1 − π", shown(rest), "text", door("logp")),
        (tr("Push on the choice"), marked(push * rest), colour_of(push), door("gradient")),
    ]
    return [*lines, *_entropy(view, row, token)]


def _of_sampler(view: StepView, row: int, token: int, door: Callable[[str], Quantity]) -> list[Line]:
    """Return both log-probabilities of the token, and the weight given by their truncated ratio.

    The list is empty if the sampler's log-probabilities are not recorded.
    """
    step = view.step
    weights = None if step is None else recompute.importance_weights(step)
    if step is None or step.sampling_logp is None or weights is None:
        return []
    return [
        (tr("log π_old"), shown(float(step.old_logp[row, token])), "text", door("old_logp")),
        (tr("log π, sampler"), shown(float(step.sampling_logp[row, token])), "text", door("sampling_logp")),
        (tr("Importance weight"), shown(float(weights[row, token])), "text", door("sampling_logp")),
    ]


def _of_kl(view: StepView, row: int, token: int, door: Quantity) -> list[Line]:
    assert view.terms is not None
    if view.terms.kl is None:
        return []
    lines: list[Line] = [(tr("KL estimate"), shown(float(view.terms.kl[row, token])), "kl", door)]
    total = view.derived(_kl_total)
    if total is not None and view.terms.kl.size > 1:
        share = view.terms.kl[row, token] / total
        lines.append((tr("Share of the KL"), f"{100 * share:.1f}%", "kl", door))
    return lines


def _entropy(view: StepView, row: int, token: int) -> list[Line]:
    """Return the entropy at the token's position, before the update and after the part revealed so far."""
    step = view.step
    if step is None or step.context is None:
        return []
    both = [recompute.exact_entropy(step, passed) for passed in (0, view.updated)]
    values = " → ".join(shown(float(entropy[row, token])) for entropy in both if entropy is not None)
    door = Quantity(name="entropy", passed=0, context=int(step.context[row, token]))
    return [(tr("Entropy here"), values, "entropy", door)] if values else []


def _branch(view: StepView, ratio: float) -> str:
    """Return the branch of the minimum that a ratio takes, or the surrogate's name if it is not a minimum of two
    terms.
    """
    algorithm = SURROGATES[view.objective.surrogate]
    if algorithm.clip is None or algorithm.clip.cuts_weight or algorithm.path is not Path.RATIO:
        return worded(view.objective.surrogate)
    low, high = algorithm.clip.band(view.objective)
    return tr("r A (in the band)") if low <= ratio <= high else tr("r A (outside)")


def marked(value: float) -> str:
    """Return a number with a glyph for its sign, so that up and down can be told apart without colour."""
    glyph = "▲" if value > 0 else "▼" if value < 0 else "·"
    return f"{glyph} {shown(abs(value))}"


def colour_of(value: float) -> str:
    """Return the meaning of a number's sign, which determines its colour."""
    return "push_up" if value > 0 else "push_down" if value < 0 else "muted"


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
        notes.append((f"R {shown(reward)}" if reward == reward else tr("unscored"), "reward"))
    return [*notes, (marked(advantage), colour_of(advantage)), (span, "muted")]
