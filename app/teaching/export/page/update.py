"""One update on a page: cards, sentences about the stages, the policy as lanes or the tokens, and the step table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from app.formula.objective_terms import objective_terms
from app.panels.policy_data import picture, stage_sentence
from app.panels.step_columns import LOOKS, columns_shown, table_column, values_shown
from app.plotting.numbers import metric_text, residue, shown, signed
from app.teaching.export.page.explained import ShownUpdate
from app.teaching.export.page.markup import Markup, element, formula, table
from app.token_grid.cells import visible_text
from app.token_grid.tints import DEFAULT, TINTS, Tint, strength
from app.token_grid.token_film import stage_sentence as stage_of_tokens
from app.widgets.stage_button import STAGE_HELP, STAGE_NAMES
from app.workspace.cursor import Cursor, Stage
from grpo_core import step_table
from grpo_core.explain import Quantity
from grpo_core.metrics import METRICS
from grpo_core.text import plural, tr
from grpo_core.texts import question_text

MOST_ROWS = 64
"""Maximum number of completions in an update's table. The window shows all of them."""


def update_section(update: ShownUpdate, title: str, *, open_: bool) -> Markup:
    """Return the update in a collapsible section with ``title``."""
    latex = " ".join(term.latex for term in objective_terms(update.step.settings.objective))
    loss = element("p", formula(latex), class_="objective", aria_label=tr("The loss that the update descends"))
    parts = [_cards(update), _stages(update), loss, lanes(update), tokens(update)]
    return element(
        "details",
        element("summary", element("h2", title)),
        *parts,
        _table(update),
        class_="update",
        id=update.id,
        open=open_,
    )


def _cards(update: ShownUpdate) -> Markup:
    known = {name: value for name, value in update.numbers.cards.items() if not math.isnan(value)}
    rows = []
    for name, metric in METRICS.items():
        if name in known:
            text = metric_text(name, known[name], update.view.origin.vocabulary, update.numbers.rounding(name))
            text += f" {metric.unit}" if metric.unit else ""
            rows.append(
                element("div", element("dt", metric.title), element("dd", update.door(Quantity(name), text, "number")))
            )
    return element("dl", *rows, class_="cards")


def _stages(update: ShownUpdate) -> Markup:
    items = []
    for stage in Stage:
        button = element(
            "button",
            STAGE_NAMES[stage],
            type="button",
            class_="stage",
            data_stage=int(stage),
            aria_pressed="true" if stage is Stage.UPDATE else "false",
            title=STAGE_HELP[stage],
        )
        items.append(element("li", button, " ", element("span", _stage_words(update, stage))))
    return element("ol", *items, class_="stages", aria_label=tr("Stages of the update"))


def _stage_words(update: ShownUpdate, stage: Stage) -> str:
    """Return a sentence about a stage of this update or, if there is none, about what the stage does in general."""
    view = update.view.at(stage, update.passed)
    words = ""
    if update.numbers.long:
        words = stage_of_tokens(view, update.group, Cursor(step=update.step.step, stage=stage, passed=update.passed))
    elif update.step.context is not None:
        drawn = picture(view, int(update.step.context[0, 0]), None)
        words = "" if drawn is None else stage_sentence(drawn)
    return words or STAGE_HELP[stage]


def _table(update: ShownUpdate) -> Markup:
    step, origin, passed = update.step, update.view.origin, update.passed
    columns = columns_shown(step, origin)
    order = [step_table.columns(step).index(column) for column in columns]
    rows = [
        row
        for completion in update.rows[:MOST_ROWS]
        for row in step_table.rows(update.numbers, passed, origin=origin, only=completion)
    ]
    heads = [
        element("th", look.title, scope="col", title=look.help, class_=_late(column))
        for column, look in ((column, table_column(column, step, origin)) for column in columns)
    ]
    values = [
        values_shown(column, [row.cells[place] for row in rows], Stage.UPDATE)
        for column, place in zip(columns, order, strict=True)
    ]
    body = [
        element("tr", *_cells(update, row, columns, [column[place] for column in values]))
        for place, row in enumerate(rows)
    ]
    caption = tr("Step table, pass {passed} of {passes}").format(passed=passed + 1, passes=step.passes)
    if update.numbers.long:
        caption = tr("Step table of prompt {group}, pass {passed} of {passes}").format(
            group=update.group + 1, passed=passed + 1, passes=step.passes
        )
    if len(update.rows) > MOST_ROWS:
        caption = plural(
            "{caption}, the first {most} of {count} completion",
            "{caption}, the first {most} of {count} completions",
            len(update.rows),
        ).format(caption=caption, most=MOST_ROWS, count=len(update.rows))
    return table(caption, heads, body, scrolls=True)


def _late(column: step_table.Column) -> str | None:
    """Return the CSS class of a column, which names the stage that reveals it. None if its values are not explained."""
    if not column.explained:
        return None
    return f"from-{int(LOOKS[column.name].stage)}"


def _cells(
    update: ShownUpdate, row: step_table.Row, columns: Sequence[step_table.Column], values: Sequence[object]
) -> Iterator[Markup]:
    for place, (column, value) in enumerate(zip(columns, values, strict=True)):
        address = step_table.address(row, column, update.passed)
        text = shown(value, 3) if not isinstance(value, str) else value
        late = _late(column)
        if address is None or value is None:
            kind = "mono" if LOOKS[column.name].kind == "mono" else None
            yield element("th" if not place else "td", text, scope="row" if not place else None, class_=kind)
            continue
        sign = _sign(column.name, value)
        yield element("td", update.door(address, text or tr("no"), sign), class_=late)


def _sign(name: str, value: object) -> str:
    """Return the CSS class for the sign of advantages and pushes."""
    if LOOKS[name].kind != "push" or not isinstance(value, float) or math.isnan(value) or not value:
        return ""
    return "up" if value > 0 else "down"


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
            _lanes_of(
                update, context, before[context], after[context], drawn if places is None else drawn[places == context]
            )
            for context in range(len(before))
        ),
        class_="lanes",
    )


def _lanes_of(update: ShownUpdate, context: int, before: np.ndarray, after: np.ndarray, drawn: np.ndarray) -> Markup:
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


LEVELS = 8
"""Number of tint strengths."""


def tokens(update: ShownUpdate) -> Markup | None:
    """Return the completions of the prompt shown, or None if they are one token long."""
    if not update.numbers.long:
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
    """Return tint levels (B, T), integers from −LEVELS to LEVELS, whose sign gives the colour."""
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
        doors = [update.explained.place(update, quantity) for quantity in asked.values()]
        level = here.get(first, 0)
        colour = f"u{level}" if level > 0 else f"d{-level}" if level < 0 else ""
        parts.append(
            update.door(
                asked[first or DEFAULT],
                text,
                f"token {colour}",
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
