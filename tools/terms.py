"""Terms of the field and how translations say them, and the style of a language: resources/translations/terms.toml."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TERMS = Path(__file__).parents[1] / "resources" / "translations" / "terms.toml"
_INSERTED = re.compile(r"\{(?:[^{}]|\{[^{}]*\})*\}|(?<=\|)[^\[\]|]*(?=\])")
"""Placeholders, and the English names of glossary terms in links, which are not translated."""

_HAN = r"[\u4e00-\u9fff]"
_STYLE = {
    "zh_CN": (
        (rf"{_HAN}[,;:?!](?!/)|{_HAN}\.(?!\w)", "punctuation after a Chinese character has full width"),
        (
            rf"{_HAN}[A-Za-z0-9\u0370-\u03ff]|[A-Za-z0-9\u0370-\u03ff]{_HAN}",
            "Chinese and Latin are separated by a space",
        ),
        (
            r"(?<! ) [，。：；？！、（）《》]|[，。：；？！、（《》] (?! )",
            "no space stands beside punctuation of full width",
        ),
    )
}
"""Patterns that a translation must not have, with what is wrong, by language."""
_UNSEEN = re.compile(r"</?(?:a|b|br|i|p)\b[^<>]*>| (?=\|\|)|(?<=\|\|) |\[(?=[^\[\]|]*[|\]])|\|[^\[\]|]*\]|\]")
"""Tags of HTML, what marks a link, and spaces between two wordings of a lesson, “{in the window || on paper}”."""


@dataclass(frozen=True, kw_only=True)
class Term:
    """A term in English, and the forms of which a translation of a sentence with it has at least one.

    Attributes:
        english: the term, without inflection.
        forms: accepted forms; the first is the one to use in a heading or a table.
        demanded: whether each sentence with the term must have one of the forms.
    """

    english: str
    forms: tuple[str, ...]
    demanded: bool

    @property
    def pattern(self) -> re.Pattern[str]:
        """The term and its plural as whole words, which are not part of a path or a name in code."""
        return _pattern(self.english)


@cache
def _pattern(english: str) -> re.Pattern[str]:
    words = re.escape(english).replace(r"\ ", r"[ -]").replace(r"\-", "[ -]")
    stem = words[:-1] + "(?:y|ies)" if english.endswith("y") else words + "(?:s|es)?"
    return re.compile(rf"(?<![\w./-]){stem}(?![\w/-]|\.\w)", re.IGNORECASE)


@cache
def terms(language: str) -> tuple[Term, ...]:
    """Return the terms that have a form in a language such as “zh_CN”, longer ones first."""
    found = [
        Term(english=english, forms=tuple(row[language]), demanded=row.get("demanded", True))
        for english, row in tomllib.loads(TERMS.read_text("utf-8")).items()
        if language in row
    ]
    return tuple(sorted(found, key=lambda term: -len(term.english)))


def missing(source: str, translation: str, language: str, free: Sequence[str] = ()) -> Iterator[Term]:
    """Yield the terms of the English ``source`` of which ``translation`` has no form.

    A term inside a longer one, such as “policy” in “reference policy”, is not asked for separately. Terms in ``free``
    are left out.
    """
    english, said = _INSERTED.sub(" ", source), translation.casefold()
    for term in terms(language):
        shorter = term.pattern.sub("\0", english)
        if shorter == english:
            continue
        english = shorter
        if term.demanded and term.english not in free and not any(form.casefold() in said for form in term.forms):
            yield term


def style_fault(translation: str, language: str) -> str:
    """Return what a translation does against the style of its language, with the place, or "" if nothing was found."""
    shown = _UNSEEN.sub("", translation)
    for pattern, rule in _STYLE.get(language, ()):
        if found := re.search(pattern, shown):
            return f"{rule}: “{found[0]}”"
    return ""
