"""The tokens of one prompt's completions, each tinted by a number that a click explains."""

from __future__ import annotations

import numpy as np

from app.plotting.numbers import residue, shown, signed
from app.teaching.export.page.explained import ShownUpdate
from app.teaching.export.page.markup import Markup, element
from app.token_grid.tints import DEFAULT, TINTS, Tint, strength
from app.token_grid.white_space import visible_text
from grpo_core.explain import Quantity
from grpo_core.text import tr
from grpo_core.texts import question_text

LEVELS = 8
"""Number of tint strengths."""


def tokens(update: ShownUpdate) -> Markup | None:
    """Return the completions of the prompt shown, or None if they are one token long."""
    if not update.long:
        return None
    known = {name: values for name, tint in TINTS.items() if (values := tint.values(update.view)) is not None}
    first = DEFAULT if DEFAULT in known else next(iter(known), "")
    levels = {name: _levels(values, TINTS[name], TINTS[name].limit(update.view)) for name, values in known.items()}
    prompt = question_text(update.step, update.group, update.view.origin)
    choices = [
        element("option", TINTS[name].title, value=place, selected=name == first) for place, name in enumerate(known)
    ]
    label = element("label", tr("Tint"), " ", element("select", *choices, class_="tint"))
    legend = [
        element("p", _legend(TINTS[name]), class_="legend", data_tint=place, hidden=name != first)
        for place, name in enumerate(known)
    ]
    number = tr("Prompt {group}: ").format(group=update.group + 1)
    rows = [_completion(update, row, first, levels) for row in update.rows]
    return element(
        "div",
        element("p", number, element("bdi", prompt), class_="mono"),
        label if known else None,
        *legend,
        element("ol", *rows, class_="completions"),
        class_="tokens",
    )


def _levels(values: np.ndarray, tint: Tint, limit: float) -> np.ndarray:
    """Return tint levels (B, T), integers from −LEVELS to LEVELS.

    The sign gives the colour, the magnitude its strength.
    """
    shares = np.nan_to_num(np.asarray(values, dtype=float) / limit).ravel().tolist()
    levels = [round(LEVELS * strength(share)) * (1 if share >= 0 else -1) for share in shares]
    return np.array(levels, dtype=int).reshape(np.shape(values))


def _legend(tint: Tint) -> str:
    return tr("{help} Colours run from “{low}” to “{high}”.").format(help=tint.help, low=tint.low, high=tint.high)


def _completion(update: ShownUpdate, row: int, first: str, levels: dict[str, np.ndarray]) -> Markup:
    step, words = update.step, update.view.origin.vocabulary
    parts = []
    for token in np.flatnonzero(step.there[row]).tolist():
        index = int(step.tokens[row, token])
        text = visible_text(words[index]) if 0 <= index < len(words) else str(index + 1)
        if not step.mask[row, token]:
            parts.append(element("u", text, class_="token", title=tr("not in the loss")))
            continue
        here = {name: int(values[row, token]) for name, values in levels.items()}
        asked = {
            name: Quantity(TINTS[name].quantity, passed=update.passed, row=row, token=token)
            for name in here or (DEFAULT,)
        }
        doors = [update.place(quantity) for quantity in asked.values()]
        parts.append(
            update.door(
                asked[first or DEFAULT],
                text,
                f"token {tint_class(here.get(first, 0))}",
                data_levels=",".join(map(str, here.values())),
                data_doors=",".join("" if place is None else str(place) for place in doors),
            )
        )
    advantage = update.numbers[Quantity("advantage", row=row, token=0)]
    reward = update.numbers[Quantity("reward", row=row)]
    numbers = element(
        "span",
        tr("reward"),
        " ",
        update.door(Quantity("reward", row=row), shown(reward)),
        " ",
        tr("advantage"),
        " ",
        update.door(Quantity("advantage", row=row, token=0), signed(residue(advantage, 1.0))),
        class_="paid",
    )
    return element("li", element("span", *parts, class_="line"), numbers, value=row + 1)


def tint_class(level: int) -> str:
    """Return the class of a token's colour."""
    return f"u{level}" if level > 0 else f"d{-level}" if level < 0 else ""
