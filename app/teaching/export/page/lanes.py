"""The policy as lanes: each action's probability before and after the update, and under the reference."""

from __future__ import annotations

import numpy as np

from app.plotting.numbers import shown, signed
from app.teaching.export.page.explained import ShownUpdate
from app.teaching.export.page.markup import Markup, element, table
from grpo_core.explain import Quantity
from grpo_core.text import tr

MOST_PLACES, MOST_ACTIONS = 12, 64
"""Maximum number of contexts and of actions in a policy that is drawn.

For a language model, tokens say more than the policy.
"""
LENGTH = 100
"""Length of the lane of an action with probability 1, in drawing units."""


def lanes(update: ShownUpdate) -> Markup | None:
    """Return a table of lanes for each context, or None if the full distributions are not recorded or are too large."""
    view, step = update.view, update.step
    before, after = view.policy(0), view.policy(update.passed + 1)
    if before is None or after is None or before.shape[0] > MOST_PLACES or before.shape[1] > MOST_ACTIONS:
        return None
    drawn = step.tokens[step.mask]
    places = None if step.context is None else step.context[step.mask]
    return element(
        "div",
        *(
            _table(
                update, context, before[context], after[context], drawn if places is None else drawn[places == context]
            )
            for context in range(len(before))
        ),
        class_="lanes",
    )


def _table(update: ShownUpdate, context: int, before: np.ndarray, after: np.ndarray, drawn: np.ndarray) -> Markup:
    names, reference = update.view.origin.vocabulary, update.view.reference
    states, known = (0, update.passed + 1), None if reference is None else reference[context]
    rows = []
    for action in range(len(before)):
        old, now = (
            update.door(Quantity("probability", passed=state, context=context, action=action), shown(float(value)))
            for state, value in zip(states, (before[action], after[action]), strict=True)
        )
        name = names[action] if action < len(names) else str(action + 1)
        count = int((drawn == action).sum())
        rows.append(
            element(
                "tr",
                element("th", name, scope="row"),
                element("td", str(count) if count else ""),
                element("td", _lane(before[action], after[action], None if known is None else known[action])),
                element("td", old),
                element("td", now),
                element("td", signed(float(after[action] - before[action]))),
            )
        )
    heads = (tr("action"), tr("drawn"), "π", tr("π before"), tr("π after"), tr("change"))
    caption = tr("Policy before the update, and after pass {passed}").format(passed=update.passed + 1)
    if len(update.view.origin.dist_logp if update.view.origin.dist_logp is not None else ()) > 1:
        caption = tr("{caption}, in place {context}").format(caption=caption, context=context + 1)
    return table(caption, heads, rows)


def _lane(before: float, after: float, reference: float | None) -> Markup:
    """Return a bar for the new probability, a mark for the old one, and a dotted mark for the reference."""
    kind = "bar up" if after >= before else "bar down"
    return element(
        "svg",
        element("rect", x=0, y=2, width=_x(after), height=8, class_=kind),
        _mark(before, "old"),
        None if reference is None else _mark(reference, "reference"),
        viewBox=f"0 0 {LENGTH} 12",
        preserveAspectRatio="none",
        class_="lane",
        aria_hidden="true",
    )


def _mark(probability: float, kind: str) -> Markup:
    return element("line", x1=_x(probability), x2=_x(probability), y1=0, y2=12, class_=kind)


def _x(probability: float) -> float:
    return round(LENGTH * float(probability), 2)
