"""One update on a page: cards, sentences about the stages, the policy as lanes or the tokens, and the step table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from app.formula.objective_terms import objective_terms
from app.panels.policy_data import picture
from app.panels.policy_words import stage_sentence
from app.panels.step_columns import KINDS, UNTIL, columns_shown, table_column, values_shown
from app.plotting.numbers import metric_text, shown
from app.teaching.export.page.explained import ShownUpdate
from app.teaching.export.page.lanes import lanes
from app.teaching.export.page.markup import Markup, element, formula, table
from app.teaching.export.page.tokens import tokens
from app.token_grid.token_film import stage_sentence as stage_of_tokens
from app.widgets.stage_button import STAGE_HELP, STAGE_NAMES
from app.workspace.cursor import Cursor, Stage
from grpo_core import step_table
from grpo_core.config import Settings
from grpo_core.explain import Quantity
from grpo_core.metrics import METRICS
from grpo_core.text import plural, tr

MOST_ROWS = 64
"""Maximum number of completions in an update's table. The window shows all of them."""


def update_section(update: ShownUpdate, title: str, *, open_: bool) -> Markup:
    """Return the update in a collapsible section with ``title``."""
    parts = [_cards(update), _stages(update), _objective(update.step.settings), lanes(update), tokens(update)]
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
    if update.long:
        words = stage_of_tokens(view, update.group, Cursor(step=update.step.step, stage=stage, passed=update.passed))
    elif update.step.context is not None:
        drawn = picture(view, int(update.step.context[0, 0]), None)
        words = "" if drawn is None else stage_sentence(drawn)
    return words or STAGE_HELP[stage]


def _objective(settings: Settings) -> Markup:
    latex = " ".join(term.latex for term in objective_terms(settings.objective))
    return element("p", formula(latex), class_="objective", aria_label=tr("The loss that the update descends"))


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
        values_shown(column, [row.cells[place] for row in rows], None)
        for column, place in zip(columns, order, strict=True)
    ]
    body = [
        element("tr", *_cells(update, row, columns, [column[place] for column in values]))
        for place, row in enumerate(rows)
    ]
    caption = tr("Step table, pass {passed} of {passes}").format(passed=passed + 1, passes=step.passes)
    if update.long:
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
    """Return the CSS class of a column that is revealed after the first stage.

    The class is named after the stage that reveals it. None for a column whose values are not explained.
    """
    if not column.explained:
        return None
    stage = next((stage for stage, seen in UNTIL.items() if column.name in seen), Stage.UPDATE)
    return f"from-{int(stage)}"


def _cells(
    update: ShownUpdate, row: step_table.Row, columns: Sequence[step_table.Column], values: Sequence[object]
) -> Iterator[Markup]:
    for place, (column, value) in enumerate(zip(columns, values, strict=True)):
        address = step_table.address(row, column, update.passed)
        text = shown(value, 3) if not isinstance(value, str) else value
        late = _late(column)
        if address is None or value is None:
            yield element("th" if not place else "td", text, scope="row" if not place else None, class_=_kind(column))
            continue
        sign = _sign(column.name, value)
        yield element("td", update.door(address, text or tr("no"), sign), class_=late)


def _kind(column: step_table.Column) -> str | None:
    return "mono" if KINDS.get(column.name) == "mono" else None


def _sign(name: str, value: object) -> str:
    """Return the CSS class for the sign of advantages and pushes."""
    if KINDS.get(name) != "push" or not isinstance(value, float) or math.isnan(value) or not value:
        return ""
    return "up" if value > 0 else "down"
