"""Parser of the steps and predictions of a lesson file."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from grpo_core.config import Settings, described_at, flat, language_settings
from grpo_core.errors import SettingsError
from grpo_core.explain import KINDS as QUANTITIES
from grpo_core.explain import Quantity
from grpo_core.metrics import METRICS
from grpo_core.teaching.lessons.lesson import KINDS, SHOWN, STAGES, Answer, Choice, LessonStep, Prediction
from grpo_core.teaching.lessons.limits import check_choices, check_step
from grpo_core.teaching.lessons.table import MISSING, Table, nearest
from grpo_core.text import plural, tr, without_stop

MOST_WORDS = 40
"""Maximum number of words in the text next to a picture."""
MOST_KNOBS = 3
LONGEST_MINUTES = 60
MOST_UPDATES = 5000
POLICIES: Mapping[str, Callable[[], Settings]] = {"bandit": Settings, "language": language_settings}
"""Kinds of policies, with their default settings."""
TERM = re.compile(r"\[([^\[\]|]+)(?:\|([^\[\]|]+))?\]")
"""A term in a text: [term] or [shown text|term]."""
_TOUCHED = re.compile(r"( ?)\{([^{}]*?)(?: \|\| ([^{}]*))?\}")


@dataclass(frozen=True, kw_only=True)
class Offer:
    """The names that an interactive understands.

    Attributes:
        shows: values allowed in a step's ``show``.
        checks: names of the numbers that it computes for predictions.
        state: keys allowed in a step's ``state``, with their defaults, whose types their values have.
        words: texts allowed for some of these keys, alone or in a list.
        parts: names of the parts that a question can hide.
    """

    shows: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    state: Mapping[str, object] = field(default_factory=dict)
    words: Mapping[str, Sequence[str]] = field(default_factory=dict)
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """All names that a lesson can use: panels, interactives, recorded runs and defined terms."""

    panels: tuple[str, ...] = ()
    interactives: Mapping[str, Offer] = field(default_factory=dict)
    terms: frozenset[str] = frozenset()
    recorded: tuple[str, ...] = ()


def terms_in(text: str) -> dict[str, str]:
    """Return the terms in brackets, [term] or [shown text|term], with the text shown for the first link to each."""
    found: dict[str, str] = {}
    for said, term in TERM.findall(text):
        found.setdefault(term or said, said)
    return found


def spoken(text: str) -> str:
    """Return ``text`` without the brackets."""
    return TERM.sub(r"\1", text)


def to_touch(text: str) -> str:
    """Return ``text`` for a window, in which things can be dragged: of ``{one || other}``, the first part."""
    return _TOUCHED.sub(r"\1\2", text).strip()


def to_read(text: str) -> str:
    """Return ``text`` for a page or a film, in which nothing can be dragged: of ``{one || other}``, the second part,
    and of ``{one}`` nothing.
    """
    return _TOUCHED.sub(lambda found: found[1] + found[3] if found[3] else "", text).strip()


class Steps:
    """Parser of a lesson's steps. Fields that a step omits have the value of the previous step."""

    def __init__(self, t: Table, vocabulary: Vocabulary, offer: Offer, terms: set[str]) -> None:
        self._vocabulary, self._offer, self._terms = vocabulary, offer, terms
        start = t.table("start", {})
        policy, settings = start.word("policy", tuple(POLICIES), "bandit"), start.table("settings", {})
        self.start = self._base = _replaced(settings, POLICIES[policy](), settings.plain())
        self._panels = self._known_panels(t)
        self._knobs = self._known_knobs(t, self.start)
        self._changed: dict[str, Any] = {}
        self._state: dict[str, Any] = {}
        self._last = LessonStep(text="", update=start.whole("updates", 0))
        start.done()
        steps = t.tables("steps", ())
        if not steps:
            raise t.error("steps", tr("a lesson must have at least one [[steps]]"))
        self.steps = tuple(self._step(step) for step in steps)

    def _step(self, t: Table) -> LessonStep:
        settings = t.table("settings", {})
        if "policy" in t:  # from its defaults: earlier settings belong to the other policy
            self._base, self._changed, self._knobs = POLICIES[t.word("policy", tuple(POLICIES))](), {}, ()
        self._changed |= settings.plain()
        here = _replaced(settings, self._base, self._changed)
        self._state |= self._known_state(t)
        before = self._last
        recorded = t.word("recorded", ("", *self._vocabulary.recorded), self._last.recorded)
        passed = t.whole("pass", 0) - 1
        row = t.whole("row", 0, low=0)
        text = self._text(t, "text")
        self._last = step = LessonStep(
            text=to_touch(text),
            still=to_read(text),
            speaker=t.said("speaker", ""),
            minutes=_minutes(t),
            base=self._base,
            update=_updates(t, self._last.update),
            settings=dict(self._changed),
            recorded=recorded,
            stage=t.word("stage", STAGES, self._last.stage),
            passed=passed,
            row=row - 1 if row else self._last.row,
            token=t.whole("token", 1, low=1) - 1,
            show=self._known_show(t, self._last.show),
            state=dict(self._state),
            hides=self._known_parts(t),
            knobs=self._known_knobs(t, here) if "knobs" in t else self._knobs,
            panels=self._known_panels(t) if "panels" in t else self._panels,
            explain=_quantity(t.table("explain")) if "explain" in t else None,
            predict=self._prediction(t.table("predict")) if "predict" in t else None,
        )
        if recorded and (settings.plain() or step.knobs):
            raise t.error(
                "recorded", tr("a recorded run cannot be changed: it can have neither “settings” nor “knobs”")
            )
        t.done()
        check_step(t, step, here)
        if step.predict is not None:
            self._last = step = dataclasses.replace(step, opening=_opening(step, step.predict, before))
        return step

    def _text(self, t: Table, key: str, default: Any = MISSING) -> str:
        text = t.text(key, default)
        count = len(spoken(to_touch(text)).split())
        if count > MOST_WORDS:
            raise t.error(
                key,
                plural(
                    "{count} word is too many next to a picture; use at most {most}",
                    "{count} words are too many next to a picture; use at most {most}",
                    count,
                ).format(count=count, most=MOST_WORDS),
            )
        for term in terms_in(text):
            if term.casefold() not in self._terms:
                close = nearest(term.casefold(), sorted(self._terms))
                raise t.error(
                    key,
                    tr("“{term}” is in brackets, but neither [words] nor the glossary defines it{close}").format(
                        term=term, close=close
                    ),
                )
        return tr(text) if text else ""

    def _known_show(self, t: Table, default: str) -> str:
        return t.word("show", self._offer.shows) if "show" in t else default

    def _known_state(self, t: Table) -> dict[str, Any]:
        state, values = t.table("state", {}), {}
        for key in state:
            if key not in self._offer.state:
                known = ", ".join(self._offer.state) or tr("no state")
                raise state.error(
                    key,
                    tr("the interactive knows {known}{nearest}").format(
                        known=known, nearest=nearest(key, self._offer.state)
                    ),
                )
            value = values[key] = state.like(key, self._offer.state[key])
            if key in self._offer.words:
                state.check_words(key, (value,) if isinstance(value, str) else value, self._offer.words[key])
        return values

    def _known_knobs(self, t: Table, settings: Settings) -> tuple[str, ...]:
        knobs = t.texts("knobs", ())
        if len(knobs) > MOST_KNOBS:
            raise t.error(
                "knobs",
                plural(
                    "a lesson can show at most {most} knob; the full program shows all",
                    "a lesson can show at most {most} knobs; the full program shows all",
                    MOST_KNOBS,
                ).format(most=MOST_KNOBS),
            )
        for knob in knobs:
            try:
                described_at(knob)
                settings.get(knob)
            except (KeyError, AttributeError):
                close = nearest(knob, flat(settings)) or tr("; an example is objective.beta")
                raise t.error("knobs", tr("“{knob}” is not a setting{close}").format(knob=knob, close=close)) from None
        return knobs

    def _known_panels(self, t: Table) -> tuple[str, ...]:
        pattern = tr("there is no panel “{panel}”; choose one of {names}{nearest}")
        return _known_names(t, "panels", sorted(self._vocabulary.panels), pattern)

    def _prediction(self, t: Table) -> Prediction:
        kind = t.word("kind", KINDS)
        choices = tuple(_choice(choice) for choice in t.tables("choices", ()))
        if (kind == "choice") != (len(choices) > 1):
            raise t.error(
                "choices" if choices else "",
                tr("a question of kind “choice” must have two or more [[choices]], and no other kind can have any"),
            )
        check_choices(t, choices)
        low, high = t.pair("range", (0.0, 1.0) if kind not in ("number", "ghost") else MISSING)
        if kind in ("number", "ghost") and not low < high:
            raise t.error("range", tr("the range must have a width"))
        whole = all(isinstance(end, int) for end in t.any("range", (0.0, 1.0)))
        shown = t.word("shown", SHOWN, "count" if whole else "digits")
        if shown == "count" and kind in ("number", "ghost") and not whole:
            raise t.error("shown", tr("the range of a count must be whole numbers, such as [0, 8]"))
        prediction = Prediction(
            kind=kind,
            ask=self._text(t, "ask"),
            answer=self._answer(t.table("answer")),
            within=t.number("within", 0.0 if kind in ("choice", "direction") else MISSING),
            low=low,
            high=high,
            shown=shown,
            choices=choices,
            number=t.said("number", ""),
            start=t.whole("start") if "start" in t else None,
            show=self._known_show(t, ""),
            state=self._known_state(t),
            seeds=t.word("seeds", ("any", "own"), "any"),
            hides=self._known_parts(t),
            reveal=self._text(t, "reveal", ""),
            holds=t.pair("holds", (-math.inf, math.inf)),
        )
        t.done()
        return prediction

    def _known_parts(self, t: Table) -> tuple[str, ...]:
        return _known_names(t, "hides", self._offer.parts, tr("the interactive can hide {known}{nearest}"))

    def _answer(self, t: Table) -> Answer:
        given = [key for key in ("metric", "quantity", "check") if key in t]
        if len(given) != 1:
            raise t.error("", tr("an answer must have exactly one of “metric”, “quantity” and “check”"))
        answer = Answer(
            metric=t.word("metric", sorted(METRICS)) if "metric" in t else "",
            quantity=_quantity(t.table("quantity")) if "quantity" in t else None,
            check=t.word("check", self._offer.checks) if "check" in t else "",
            update=t.whole("update") if "update" in t else None,
            since=t.whole("since") if "since" in t else None,
        )
        t.done()
        if answer.check and (answer.update, answer.since) != (None, None):
            raise t.error(
                "check", tr("a check refers to what the interactive shows, and can have neither “update” nor “since”")
            )
        return answer


def _replaced(t: Table, base: Settings, changes: dict[str, Any]) -> Settings:
    """Return ``base`` with ``changes``, of which the table ``t`` has the latest.

    Raises:
        LessonError: a setting is invalid. For an unknown name, the message suggests the most similar one.
    """
    try:
        return base.replace(changes)
    except SettingsError as error:
        close = "" if error.field in flat(base) else nearest(error.field, flat(base))
        raise t.error(error.field if error.field in t else "", without_stop(str(error)) + close) from None


def _known_names(t: Table, key: str, known: Sequence[str], pattern: str) -> tuple[str, ...]:
    """Read a list of names, each of which must be ``known``. ``pattern`` is the sentence about another one."""
    given = t.texts(key, ())
    for name in given:
        if name not in known:
            names = ", ".join(known) or tr("nothing", "value")
            raise t.error(key, pattern.format(panel=name, names=names, known=names, nearest=nearest(name, known)))
    return given


def _opening(step: LessonStep, predict: Prediction, before: LessonStep) -> LessonStep:
    """Return what is shown while the question of ``step`` is open.

    This is either its own run at the update named by the question, or the previous step; in both cases with the
    picture that the question asks for.
    """
    if predict.start is None:
        shown, state = predict.show or before.show, {**before.state, **predict.state}
        return dataclasses.replace(before, show=shown, state=state) if predict.show or predict.state else before
    return dataclasses.replace(
        step,
        text=before.text,
        still=before.still,
        update=predict.start,
        show=predict.show or step.show,
        state={**step.state, **predict.state},
        stage="update",
        passed=-1,
        row=None,
        token=0,
        explain=None,
        predict=None,
    )


def _minutes(t: Table) -> float:
    minutes = t.number("minutes", 0.0)
    if not 0 <= minutes <= LONGEST_MINUTES:
        raise t.error(
            "minutes",
            plural(
                "a step must take 0 to {most} minute", "a step must take 0 to {most} minutes", LONGEST_MINUTES
            ).format(most=LONGEST_MINUTES),
        )
    return minutes


def _updates(t: Table, before: int) -> int:
    updates = t.whole("update", before)
    if updates > MOST_UPDATES:
        raise t.error(
            "update",
            plural(
                "a lesson can train at most {most} update", "a lesson can train at most {most} updates", MOST_UPDATES
            ).format(most=MOST_UPDATES),
        )
    return updates


def _choice(t: Table) -> Choice:
    low, high = t.pair("when", MISSING)
    choice = Choice(text=t.said("text"), low=low, high=high)
    t.done()
    return choice


def _quantity(t: Table) -> Quantity:
    """Return a number's address. In the file, rows, tokens, passes, contexts, actions and groups are counted from 1."""
    name = t.word("name", sorted({*QUANTITIES, *METRICS}))
    parts = {part: t.whole(part, low=1) - 1 for part in ("row", "token", "context", "action", "group") if part in t}
    if "pass" in t and "after" in t:
        raise t.error("after", tr("a number can be that of a pass or that after a number of passes, but not both"))
    passed = t.whole("pass", low=1) - 1 if "pass" in t else t.whole("after", 0)
    t.done()
    return Quantity(name, passed=passed, **parts)
