"""Messages of a catalogue (.ts): their parts, and the reasons why a translation cannot be used."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

from grpo_core.text import misfit

FREE = "without: "
"""Beginning of the translator's comment that lists the terms which a message does not use in their usual meaning."""
_TAG = re.compile(r"</?[a-z][a-z0-9]*\b[^<>]*>")
_MNEMONIC = re.compile(r"(?<!&)&(?=[^\W_])(?!\w+;)")
_WIDE = "，。：；？！、（）"
"""Punctuation of full width, beside which white space can be left out."""


def write(tree: ET.ElementTree[ET.Element], catalogue: Path) -> None:
    """Write a catalogue as lupdate and :func:`tools.catalogue.renew` leave it."""
    tree.write(catalogue, "utf-8", xml_declaration=True)


def key(message: ET.Element) -> tuple[str, str]:
    """Return the source of a message, and its context or English plural."""
    return message.findtext("source") or "", message.findtext("comment") or ""


def counts(message: ET.Element) -> bool:
    """Return whether a message has plural forms."""
    return message.get("numerus") == "yes"


def is_marked(message: ET.Element, *kinds: str) -> bool:
    """Return whether the translation of a message has one of these types."""
    translation = message.find("translation")
    return translation is not None and translation.get("type") in kinds


def forms(message: ET.Element) -> list[str]:
    """Return the translations of a message: a single one, or one for each plural form."""
    if counts(message):
        return [form.text or "" for form in message.iter("numerusform")]
    return [message.findtext("translation") or ""]


def fill(message: ET.Element, translations: list[str]) -> None:
    """Enter translations into a message.

    If the number of forms differs, all of them are set to the last translation, the plural.
    """
    places = [*message.iter("numerusform" if counts(message) else "translation")]
    for number, place in enumerate(places):
        place.text = translations[number] if len(translations) == len(places) else translations[-1]


def free(message: ET.Element) -> list[str]:
    """Return the terms that the message does not use in their usual meaning, as its translator has noted."""
    comment = message.findtext("translatorcomment") or ""
    return comment.removeprefix(FREE).split(", ") if comment.startswith(FREE) else []


def fault(source: str, translation: str, many: str = "") -> str:
    """Return the reason why a translation does not fit its source, in English, or "" if it fits.

    In addition to what :func:`grpo_core.text.misfit` compares, both must have the same tags, a mnemonic (“&File”) or
    none, and the same white space at both ends, except beside punctuation of full width. ``many`` is the English plural
    of ``source``.
    """
    if why := misfit(source, translation, many):
        return why
    tags = [Counter(_TAG.findall(text)) for text in (source, translation)]
    if tags[0] != tags[1]:
        return f"it has the tags {_listed(tags[1])}, and the source {_listed(tags[0])}"
    if _mnemonics(source) != _mnemonics(translation):
        return f"it has {_mnemonics(translation)} mnemonics (&), and the source {_mnemonics(source)}"
    edges = zip(_edges(source), _edges(translation), translation.strip()[:1] + translation.strip()[-1:], strict=False)
    if any(there != wanted and (there or beside not in _WIDE) for wanted, there, beside in edges):
        return "the white space at its beginning or end differs from the source"
    return ""


def _edges(text: str) -> tuple[str, str]:
    """Return the white space at the beginning and at the end."""
    bare = text.strip()
    start = text.index(bare) if bare else len(text)
    return text[:start], text[start + len(bare) :]


def _mnemonics(text: str) -> int:
    return len(_MNEMONIC.findall(text))


def _listed(tags: Counter[str]) -> str:
    return " ".join(sorted(tags.elements())) or "none"
