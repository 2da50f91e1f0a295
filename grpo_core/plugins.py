"""Rows that installed packages of others contribute to tables of the lab: surrogates, tasks, readers, checks, lessons.

A package declares each row as an entry point of the group :data:`GROUP`, ``kind.name = module:object``. In settings,
files and on screen the row is called ``package.name``, so it is always clear whose it is, and it cannot replace one of
ours. Packages are looked for once, in the first process, which tells its child processes through :data:`ENVIRONMENT`.
A module of a package is imported when the lab first needs one of its rows, after the language has been chosen. A row
that cannot be used is left out; :func:`refusals` says why.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import astuple, dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from grpo_core import parts
from grpo_core.errors import shortened
from grpo_core.text import tr, without_stop

GROUP = "grpo_lab.parts"
"""Group of the entry points."""
ENVIRONMENT = "GRPO_LAB_PACKAGES"
"""Environment variable with the rows of all packages as JSON. If it is empty, no package is used."""
TABLES = {"surrogate": "grpo_core.surrogates:SURROGATES", "task": "grpo_core.bandit.tasks:TASKS"}
"""Kind of row -> its table, a :class:`Rows`. Our parts contribute more kinds."""
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Offer:
    """One row that a package declares.

    Attributes:
        package: name of the distribution, in lower case, with hyphens.
        entry: name of the entry point, ``kind.name``.
        place: where the row is, ``module:object``.
    """

    package: str
    version: str
    entry: str
    place: str

    @property
    def kind(self) -> str:
        return self.entry.partition(".")[0]

    @property
    def id(self) -> str:
        """Name of the row in its table, in settings and in files."""
        return f"{self.package}.{self.entry.partition('.')[2]}"


class Rows(Mapping[str, T]):
    """A table of our rows, in order, followed by those of packages. The rows of packages are loaded when first used.

    Args:
        fault: function that returns why an object of a package is not a valid row, or an empty text.
        checks: where the checks of a row are, ``module:mapping`` (:mod:`grpo_core.testing`).
    """

    def __init__(self, kind: str, own: Mapping[str, T], fault: Callable[[Any], str], checks: str = "") -> None:
        self._kind, self.own, self.fault, self.checks = kind, dict(own), fault, checks

    def __getitem__(self, name: str) -> T:
        if name in self.own:
            return self.own[name]
        for offer in offers(self._kind):
            if offer.id == name and not _loaded(offer)[1]:
                row: T = _loaded(offer)[0]
                return row
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        yield from self.own
        yield from names(self._kind)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def of_type(wanted: type) -> Callable[[Any], str]:
    """Return a function for :class:`Rows` that accepts the instances of a type."""

    def fault(row: Any) -> str:
        if isinstance(row, wanted):
            return ""
        return tr("it is of type {found}, not {wanted}").format(found=type(row).__name__, wanted=wanted.__name__)

    return fault


def offers(kind: str | None = None) -> tuple[Offer, ...]:
    """Return the rows of one kind, or of all kinds, that the installed packages declare."""
    if getattr(sys, "frozen", False):
        return ()
    if ENVIRONMENT not in os.environ:
        os.environ[ENVIRONMENT] = json.dumps([astuple(offer) for offer in _installed()])
    known = _parsed(os.environ[ENVIRONMENT])
    return known if kind is None else tuple(offer for offer in known if offer.kind == kind)


def names(kind: str) -> tuple[str, ...]:
    """Return the names of the rows of packages that can be used."""
    return tuple(offer.id for offer in offers(kind) if not _loaded(offer)[1])


def files() -> Iterator[Path]:
    """Yield the folders and modules of the packages. An editable installation need not have them on ``sys.path``."""
    for module in sorted({offer.place.partition(":")[0].partition(".")[0] for offer in offers()}):
        with suppress(ImportError, ValueError):
            spec = find_spec(module)
            if spec is not None:
                yield from map(Path, spec.submodule_search_locations or filter(None, [spec.origin]))


def package_of(name: str) -> str:
    """Return the package of a row with this name, or an empty text for one of ours."""
    return name.rpartition(".")[0]


def credited(name: str, title: str) -> str:
    """Return the title of a row, with the name of its package if it is not ours."""
    package = package_of(name)
    return tr("{title} (package {package})").format(title=title, package=package) if package else title


def failed(name: str, error: Exception) -> str:
    """Log an error in the code of the row ``name`` of a package, and return a sentence about it.

    Raises:
        Exception: the error itself, if the row is ours.
    """
    if not package_of(name):
        raise error
    why = f"{type(error).__name__}: {error}".rstrip(".")
    logging.getLogger(__name__).error("%s: %s", name, why)
    return tr("{name} of the package “{package}” failed: {why}.").format(
        name=name, package=package_of(name), why=shortened(why)
    )


def refusal(kind: str, name: str) -> str:
    """Return why the row ``name`` of a package cannot be used, as a clause. Empty if it can."""
    package = package_of(name)
    for offer in offers(kind):
        if offer.id == name:
            return _loaded(offer)[1] and _sentence(offer)
    if any(offer.package == package for offer in offers()):
        return tr("the installed package “{package}” does not contain it").format(package=package)
    return tr("it belongs to the package “{package}”, which is not installed").format(package=package)


def refusals() -> list[str]:
    """Load all rows of packages. Return one sentence for each that cannot be used."""
    return [_sentence(offer) for offer in offers() if _loaded(offer)[1]]


def described() -> str:
    """Return the packages with their versions and rows in words. Empty if there are none."""
    if getattr(sys, "frozen", False):
        return tr("packages of others cannot be added to this executable")
    rows: dict[str, list[str]] = {}
    for offer in offers():
        rows.setdefault(f"{offer.package} {offer.version}", []).append(offer.entry.replace(".", " ", 1))
    listed = ", ".join(f"{package} ({', '.join(entries)})" for package, entries in rows.items())
    return tr("with packages of others: {listed}").format(listed=listed) if listed else ""


@cache
def kinds() -> dict[str, str]:
    """Return the tables by kind of row, including those of our parts."""
    return {**TABLES, **parts.merged("plugins")}


def table(kind: str) -> Rows[Any]:
    """Return the table of a kind of row.

    Raises:
        KeyError: there is no such kind.
    """
    rows: Rows[Any] = at(kinds()[kind])
    return rows


def checks_of(kind: str) -> Mapping[str, Callable[[str], None]]:
    """Return the checks of a row of this kind, functions of its name, by their names."""
    place = table(kind).checks
    return at(place) if place else {}


def _sentence(offer: Offer) -> str:
    return tr("The row “{entry}” of the package “{package}” is left out: {why}.").format(
        entry=offer.entry, package=offer.package, why=_loaded(offer)[1]
    )


@cache
def _loaded(offer: Offer) -> tuple[Any, str]:
    """Return the row, or None, and the reason why it cannot be used, or an empty text."""
    row = None
    if offer.kind not in kinds():
        why = tr("there is no kind of row “{kind}”; there are {kinds}")
        why = why.format(kind=offer.kind, kinds=", ".join(kinds()))
    elif not _NAME.fullmatch(offer.entry.partition(".")[2]):
        why = tr("its name must be a kind, a dot, and words of a to z and 0 to 9 joined by hyphens")
    else:
        try:
            row = at(offer.place)
            why = table(offer.kind).fault(row)
        except (Exception, SystemExit) as error:  # a fault in a package must not stop the lab
            why = f"{type(error).__name__}: {error}"
    if why:
        logging.getLogger(__name__).error("%s of %s: %s", offer.entry, offer.package, why)
    return row, without_stop(why)


def at(place: str) -> Any:
    """Return the object whose place is given in the form “module:object”."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


@cache
def _parsed(told: str) -> tuple[Offer, ...]:
    return tuple(
        Offer(package=package, version=version, entry=entry, place=place)
        for package, version, entry, place in json.loads(told or "[]")
    )


def _installed() -> Iterator[Offer]:
    """Yield the rows declared by the packages on ``sys.path``.

    Only files that name the group are parsed: reading the metadata of all packages would take longer than the rest of
    a command's start.
    """
    seen: set[str] = set()
    for folder in dict.fromkeys(sys.path):
        try:
            listed = sorted(os.listdir(folder or "."))
        except OSError:  # not a folder
            continue
        for name in listed:
            if name.endswith(".dist-info"):
                try:
                    with open(os.path.join(folder, name, "entry_points.txt"), "rb") as file:  # noqa: PTH118, PTH123
                        declares = GROUP.encode() in file.read()
                except OSError:
                    continue
                package = re.sub(r"[-_.]+", "-", name.split("-")[0]).lower()
                if declares and package not in seen:
                    seen.add(package)
                    yield from _declared(package, os.path.join(folder, name))  # noqa: PTH118


def _declared(package: str, folder: str) -> Iterator[Offer]:
    from importlib.metadata import PathDistribution

    found = PathDistribution(Path(folder))
    try:
        points, version = tuple(found.entry_points.select(group=GROUP)), str(found.version)
    except Exception as error:  # damaged metadata is refused like a row of no kind
        points, version = (), f"{type(error).__name__}: {error}"
        yield Offer(package=package, version=version, entry="", place="")
    for point in points:
        yield Offer(package=package, version=version, entry=point.name, place=point.value)
