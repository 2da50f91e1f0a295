"""Translation of all text for users: :func:`tr`, and :func:`plural` for text that counts something.

``lupdate`` collects the arguments of both (``python -m tools.catalogue``), which must be literals, never f-strings.
Values are inserted afterwards by name, so that a translator can rearrange them::

    tr("{title} at update {number:,}").format(title=title, number=number)
    plural("{count:,} update of {run}", "{count:,} updates of {run}", count).format(count=count, run=title)

A word with two meanings is given a context that distinguishes them: ``tr("Step", "verb")``. Symbols, numbers, tokens
and names of settings are the same in every language.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

_NAME = re.compile(r"[\w.\[\]]*", re.ASCII)
_TERM = re.compile(r"\[([^\W\d_][^\[\]|]*)(?:\|([^\[\]|]+))?\]")
"""Pattern of a glossary term in text: [term], or [shown text|term]."""


Translate: TypeAlias = Callable[[str, str, int | None], str]
"""A function that translates text, given its context and its count as for ``tr`` and ``plural``, or returns ""."""


def _as_written(text: str, context: str, count: int | None) -> str:
    return ""


_translate: Translate = _as_written
_chooser: tuple[str, ...] = ()
_language = "en"


def tr(text: str, context: str = "") -> str:
    """Return ``text`` in the language chosen at startup, or unchanged if there is no translation.

    ``context`` tells translators which meaning of an ambiguous word is used, for example "verb".
    """
    return _translate(text, context, None) or text


def plural(one: str, many: str, count: int) -> str:
    """Return the form of a message that is used for ``count`` in the current language. The caller inserts the number.

    ``one`` and ``many`` are the English singular and plural. In the catalogue, ``many`` is the context of ``one``, and
    a language can have any number of forms.
    """
    return _translate(one, many, int(count)) or (one if count == 1 else many)


def listed(words: Iterable[str]) -> str:
    """Return the words as a list: “A, B, C”."""
    return tr(", ").join(words)


def clauses(parts: Iterable[str]) -> str:
    """Return the clauses of one sentence joined, without its full stop."""
    return tr("; ").join(parts)


def enumeration(names: Sequence[str]) -> str:
    """Return the names in one phrase: “A, B and C”."""
    if len(names) < 2:
        return "".join(names)
    return tr("{names} and {last}").format(names=listed(names[:-1]), last=names[-1])


def as_sentence(clause: str) -> str:
    """Return a clause with the full stop of the current language."""
    return tr("{clause}.").format(clause=clause)


def without_stop(sentence: str) -> str:
    """Return a sentence without its full stop."""
    return sentence.rstrip(".。")


def misfit(source: str, translation: str, many: str = "") -> str:
    """Return the reason why a translation does not fit its source, in English, or "" if it fits.

    Both must have the same placeholders and link to the same glossary terms. If ``many``, the English plural of
    ``source``, is given, a placeholder that is missing from ``source`` or ``many`` is optional.
    """
    sources = (source, many) if many else (source,)
    try:
        wanted = [set(_fields(one)) for one in sources]
    except ValueError:
        return ""  # braces that are not placeholders: nothing is filled in
    try:
        found = set(_fields(translation))
    except ValueError as error:
        return f"its braces cannot be read ({error})"
    if not set.intersection(*wanted) <= found <= set.union(*wanted):
        return f"it has the fields {_listed(found)}, and the source {_listed(set.union(*wanted))}"
    linked, there = ({term or said for said, term in _TERM.findall(text)} for text in (source, translation))
    if linked != there:
        return f"it links to {_listed(there)}, and the source to {_listed(linked)}"
    return ""


def _fields(text: str) -> Iterator[str]:
    """Yield the names of the placeholders in a template, including those nested in a format specification.

    Words in braces are those of a lesson: “{in the window || on paper}” or “{in the window}”, of which only the kind
    counts.
    """
    for _, name, format, _ in string.Formatter().parse(text):
        if name is not None and _NAME.fullmatch(name):
            yield name
            yield from _fields(format or "")
        elif name is not None:
            yield "… || …" if "||" in f"{name}{format}" else "…"


def _listed(names: set[str]) -> str:
    return ", ".join(f"“{name}”" for name in sorted(names)) or "none"


def use(translate: Translate | None, chooser: Sequence[str] = (), language: str = "en") -> None:
    """Set the function that ``tr`` and ``plural`` use. With None, text is left in English.

    Module constants are translated when they are imported, so the language must be set before that. ``chooser``
    consists of the name of a function, as “module:function”, and its arguments; child processes call it to choose the
    same language. ``language`` is its code, as for :func:`language`.
    """
    global _translate, _chooser, _language
    _translate, _chooser, _language = translate or _as_written, tuple(chooser), language


def language() -> str:
    """Return the code of the current language as pages declare it, for example “en” or “zh-CN”."""
    return _language


def chooser() -> tuple[str, ...]:
    """Return the function and the arguments with which child processes choose the same language, or () for English."""
    return _chooser
