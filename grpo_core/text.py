"""Translation of all text that a user reads: ``tr``.

``lupdate`` collects the arguments of ``tr`` (``python -m tools.catalogue``), which must be literals, never f-strings.
Values are filled in afterwards, by name, so that a translator can move them::

    tr("{count:,} updates of {run}").format(count=count, run=title)

Symbols, numbers, tokens and names of settings are the same in every language.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterator

_TERM = re.compile(r"\[([A-Za-z][^\[\]|]*)(?:\|([^\[\]|]+))?\]")
"""Pattern of a glossary term in text: [term], or [shown text|term]."""


def _as_written(text: str) -> str:
    return text


_translate: Callable[[str], str] = _as_written


def tr(text: str) -> str:
    """Translate ``text`` into the language chosen at startup. Return it unchanged if there is no translation."""
    return _translate(text)


def misfit(source: str, translation: str) -> str:
    """Return the reason why a translation does not fit its source, in English. Empty if it fits.

    Both must have the same placeholders and link to the same terms.
    """
    try:
        wanted = sorted(set(_fields(source)))
    except ValueError:
        return ""  # braces that are not placeholders: nothing is filled in
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
    """Yield the names of the placeholders in a template, including those nested in a format specification."""
    for _, name, format, _ in string.Formatter().parse(text):
        if name is not None:
            yield name
            yield from _fields(format or "")


def _listed(names: list[str]) -> str:
    return ", ".join(f"“{name}”" for name in names) or "none"


def use(translate: Callable[[str], str] | None) -> None:
    """Set the function that ``tr`` translates with. With None, text is left as written.

    Module constants are translated on import, so the language must be set before that.
    """
    global _translate
    _translate = translate or _as_written
