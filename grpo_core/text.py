"""The one door of every sentence that a user reads: ``tr``.

``lupdate`` collects what stands in calls of ``tr`` (``python -m tools.catalogue``): a call holds a literal, never
an f-string: values are put in afterwards, by name, and a translator may move them::

    tr("{count:,} updates of {run}").format(count=count, run=title)

What is drawn from a formula stays as it is in any language: symbols, numbers, tokens, identifiers of settings.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterator

_TERM = re.compile(r"\[([A-Za-z][^\[\]|]*)(?:\|([^\[\]|]+))?\]")
"""A term of the glossary in a text: [term], or [as it is said|term]."""


def _as_written(text: str) -> str:
    return text


_translate: Callable[[str], str] = _as_written


def tr(text: str) -> str:
    """``text`` in the language chosen at the start. As written where there is no translation."""
    return _translate(text)


def misfit(source: str, translation: str) -> str:
    """The reason why a translation cannot stand for its source, in English. Empty where it can.

    Both must have the same fields to be filled in and link to the same terms.
    """
    try:
        wanted = sorted(set(_fields(source)))
    except ValueError:
        return ""  # braces that are no fields: nothing is filled in
    try:
        found = sorted(set(_fields(translation)))
    except ValueError as error:
        return f"its braces cannot be read ({error})"
    if wanted != found:
        return f"it has the fields {_listed(found)}, and the source {_listed(wanted)}"
    linked, there = ({term or said for said, term in _TERM.findall(text)} for text in (source, translation))
    if linked != there:
        return f"it links to {_listed(sorted(there))}, and the source to {_listed(sorted(linked))}"
    return ""


def _fields(text: str) -> Iterator[str]:
    """Names of the fields of a template, those within a format too."""
    for _, name, format, _ in string.Formatter().parse(text):
        if name is not None:
            yield name
            yield from _fields(format or "")


def _listed(names: list[str]) -> str:
    return ", ".join(f"“{name}”" for name in names) or "none"


def use(translate: Callable[[str], str] | None) -> None:
    """From now on ``tr`` asks ``translate``. None: texts stay as they are written.

    Constants of modules are translated when the module is imported: the language is chosen first.
    """
    global _translate
    _translate = translate or _as_written
