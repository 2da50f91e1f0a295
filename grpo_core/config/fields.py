"""Descriptions of settings. Help text, symbol, unit and range are declared next to the field and nowhere else.

Controls, tooltips, glossary, command line and error messages all read these descriptions.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import Any

from grpo_core import plugins
from grpo_core.arrays import Recorded
from grpo_core.errors import SettingsError
from grpo_core.text import tr
from grpo_core.versions import FIRST, newest


@dataclasses.dataclass(frozen=True, kw_only=True)
class About:
    """Description of one setting, as shown to users.

    Attributes:
        help: one sentence.
        symbol: the field's usual letter, empty if it has none.
        unit: empty for a pure number.
        low, high: allowed bounds, inclusive unless ``above`` is set.
        above: whether the lower bound itself is excluded.
        usual: the range that a slider covers and that a tooltip gives as usual.
        choices: the allowed values of a setting that is a word.
        choice_titles: titles of the choices, one each; a choice without a title is shown as written.
        optional: whether None is allowed, which disables the feature.
        live: whether a change takes effect at the next update; otherwise the setting is structural and needs a new run.
        section: heading of this setting and the following ones; if empty, the preceding setting's.
        since: the first version of the program with this setting.
        withheld: choices that are accepted from files but not offered.
        choices_since: first versions of choices that were added later, as (choice, version).
        plugins: the kind of row with which packages of others add choices (:mod:`grpo_core.plugins`), or an empty text.
        subject: what it is about, as for commands: a door of the first screen shows the settings whose subjects it
            names, and those without a subject.
    """

    help: str
    title: str
    symbol: str = ""
    unit: str = ""
    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    usual: tuple[float, float] | None = None
    choices: tuple[str, ...] = ()
    choice_titles: tuple[str, ...] = ()
    optional: bool = False
    text: bool = False
    live: bool = True
    logarithmic: bool = False
    section: str = ""
    since: str = FIRST
    choices_since: tuple[tuple[str, str], ...] = ()
    withheld: tuple[str, ...] = ()
    plugins: str = ""
    subject: str = ""

    @property
    def named(self) -> str:
        """The title with the symbol, unless the title ends with it."""
        return self.title if self.title.endswith(self.symbol) else f"{self.title} {self.symbol}"

    @property
    def offered(self) -> tuple[str, ...]:
        return tuple(choice for choice in self.choices if choice not in self.withheld)

    def needs(self, value: Any) -> str:
        """Return the oldest version of the program that understands ``value`` of this setting."""
        return newest(self.since, dict(self.choices_since).get(value, FIRST) if self.choices_since else FIRST)

    @property
    def allowed(self) -> str:
        """The allowed values, in words."""
        if self.text:
            return tr("text")
        if self.choices:
            kind = "choices"
        elif math.isinf(self.high):
            kind = "any" if math.isinf(self.low) else "above" if self.above else "from"
        else:
            kind = "above_to" if self.above else "from_to"
        phrase, phrase_optional = _ALLOWED[kind]
        return (phrase_optional if self.optional else phrase).format(
            low=self.low, high=self.high, choices=", ".join(self.offered)
        )


_ALLOWED = {
    "choices": (tr("one of {choices}"), tr("one of {choices}, or nothing")),
    "any": (tr("any finite number"), tr("any finite number, or nothing")),
    "from": (tr("a number of at least {low:g}"), tr("a number of at least {low:g}, or nothing")),
    "above": (tr("a number above {low:g}"), tr("a number above {low:g}, or nothing")),
    "from_to": (tr("a number from {low:g} to {high:g}"), tr("a number from {low:g} to {high:g}, or nothing")),
    "above_to": (
        tr("a number above {low:g}, at most {high:g}"),
        tr("a number above {low:g}, at most {high:g}, or nothing"),
    ),
}
"""Descriptions of the allowed values, for required and for optional fields."""


def setting(default: Any, help: str, title: str, **about: Any) -> Any:
    """Return a dataclass field with its :class:`About`. ``choices`` can be a dict from each word to its title,
    ``limits`` are its bounds ``low`` and ``high``, and ``above`` is a lower bound that is itself not allowed.
    """
    if "limits" in about:
        about["low"], about["high"] = about.pop("limits")
    if "above" in about:
        about |= {"low": about["above"], "above": True}
    if isinstance(about.get("choices"), dict):
        about |= {"choices": tuple(about["choices"]), "choice_titles": tuple(about["choices"].values())}
    text = isinstance(default, str) and "choices" not in about
    return dataclasses.field(default=default, metadata={"about": About(help=help, title=title, text=text, **about)})


DETAILS = "details of training"
detail = partial(setting, subject=DETAILS)
"""Return the field of a setting that matters to those who train models, and seldom to those who learn how it works."""
variant = partial(setting, subject="variants of the bandit")
"""Return the field of a setting that makes a bandit of a special kind."""
structural, structural_detail, structural_variant = (partial(kind, live=False) for kind in (setting, detail, variant))
"""Return the field of a setting of each of these kinds that only a new run can change."""


def about(cls: type, name: str) -> About:
    """Return the description of field ``name`` of dataclass ``cls``.

    Raises:
        KeyError: there is no such setting.
    """
    return _with_packages(declared(cls)[name])


def described(cls: type) -> Iterator[tuple[str, About]]:
    """Yield every setting of dataclass ``cls`` with its description, in the order of declaration."""
    for name, rule in declared(cls).items():
        yield name, _with_packages(rule)


@cache
def declared(cls: type) -> Mapping[str, About]:
    """Return the same by name, without the choices of packages, which are not loaded."""
    return {field.name: field.metadata["about"] for field in dataclasses.fields(cls) if "about" in field.metadata}


def _with_packages(rule: About) -> About:
    """Return a description whose choices include those of packages. Their titles are their names."""
    added = plugins.names(rule.plugins) if rule.plugins else ()
    if not added:
        return rule
    titles = rule.choice_titles and (*rule.choice_titles, *added)
    return dataclasses.replace(rule, choices=(*rule.choices, *added), choice_titles=titles)


def check(instance: Any) -> None:
    """Validate every field of ``instance`` against its description.

    Array-valued fields (one value per run) are compared with their bounds element by element.

    Raises:
        SettingsError: a value is not allowed; the message names the field, its value and what is allowed.
    """
    for name, rule in declared(instance.__class__).items():
        _check_value(name, getattr(instance, name), rule, type(getattr(instance.__class__, name)))


def _check_value(name: str, value: Any, rule: About, kind: type) -> None:
    def refuse() -> SettingsError:
        return SettingsError(name, value, tr("it must be {allowed}").format(allowed=_with_packages(rule).allowed))

    if value is None:
        if not rule.optional:
            raise refuse()
    elif rule.choices:
        if value in rule.choices:
            return
        if not (rule.plugins and isinstance(value, str) and plugins.package_of(value)):
            raise refuse()
        if why := plugins.refusal(rule.plugins, value):
            raise SettingsError(name, value, why)
    elif rule.text:
        if not isinstance(value, str):
            raise SettingsError(name, value, tr("it must be text"))
    elif kind is tuple:
        return  # its dataclass checks every number against the task's limits
    elif kind is bool:
        if not isinstance(value, bool):
            raise SettingsError(name, value, tr("it must be true or false"))
    elif isinstance(value, (str, bool)):
        raise refuse()
    elif isinstance(value, (int, float)):
        if kind is int and not isinstance(value, int):
            raise SettingsError(
                name, value, tr("it must be {allowed}, without a fraction").format(allowed=rule.allowed)
            )
        if value in (math.inf, -math.inf) or not rule.low <= value <= rule.high or (rule.above and value == rule.low):
            raise refuse()
    elif isinstance(value, Recorded):
        return  # it has no number yet
    elif hasattr(value, "shape"):
        inside = (value > rule.low if rule.above else value >= rule.low) & (value <= rule.high)
        if not bool(inside.all() if hasattr(inside, "all") else inside.__array_namespace__().all(inside)):
            raise refuse()
    else:
        raise refuse()
