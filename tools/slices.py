"""Slices of a catalogue for translators: JSON files with messages, and their way back into the catalogue.

A slice is a list of messages, in the order in which they stand in the program's files::

    {
      "id": "3f2a90c1",            made from source and comment; leave it as it is
      "where": "app/window/status.py", the file that uses the message, for its subject
      "source": "{count} run",     the English text; of a message that counts something, the English singular
      "plural": "{count} runs",    the English plural; only of a message that counts something
      "comment": "verb",           which meaning of an ambiguous word; only where it has one
      "old_source": "{count} Run", the English text to which the translation belongs; only of a stale translation
      "translation": ["{count} 次运行"],   a string, or a list with one string for each plural form of the language
      "without": ["run"]           add this if the text uses a term of terms.toml in another than its usual meaning
    }

Translators fill in ``translation`` and, where needed, add ``without``; everything else is only read. An empty
translation stays untranslated.
"""

from __future__ import annotations

import hashlib
import json
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tools import messages, terms

PARTS = ("resources/lessons", "teaching", "resources", "trainers", "grpo_core", "app")
"""Parts of paths by which messages are sorted into subjects; the first one that a path contains decides."""


def export(
    tree: ET.ElementTree[ET.Element], subjects: Mapping[tuple[str, str], str], folder: Path, count: int
) -> list[Path]:
    """Write the unfinished messages of a catalogue into at most ``count`` files of about equal length.

    Args:
        tree: the catalogue.
        subjects: file of each message (source, comment). Messages of the same part of the program stay together.
        folder: where to write; it is created.
        count: number of files.
    """
    undone = [message for message in tree.iter("message") if messages.is_marked(message, "unfinished")]
    undone.sort(key=lambda message: _place(subjects[messages.key(message)]))  # stable: by file, then as in the file
    length = sum(map(_length, undone))
    slices: list[list[dict[str, Any]]] = [[] for _ in range(count)]
    before = 0
    for message in undone:
        slices[min(count * before // max(length, 1), count - 1)].append(_entry(message, subjects))
        before += _length(message)
    folder.mkdir(parents=True, exist_ok=True)
    language = tree.getroot().get("language", "")
    written = []
    for number, entries in enumerate(filter(None, slices), 1):
        path = folder / f"{language}-{number}.json"
        path.write_text(json.dumps(entries, ensure_ascii=False, indent=1) + "\n", "utf-8")
        written.append(path)
    return written


def _place(path: str) -> tuple[int, str]:
    return next(number for number, part in enumerate(PARTS) if part in path), path


def _length(message: ET.Element) -> int:
    return len(messages.key(message)[0])


def _entry(message: ET.Element, subjects: Mapping[tuple[str, str], str]) -> dict[str, Any]:
    source, comment = messages.key(message)
    entry: dict[str, Any] = {"id": _id(message), "where": subjects[source, comment], "source": source}
    if comment:
        entry["plural" if messages.counts(message) else "comment"] = comment
    old = message.findtext("oldsource")
    if old:
        entry["old_source"] = old
    forms = messages.forms(message)
    entry["translation"] = forms if messages.counts(message) else forms[0]
    if without := messages.free(message):
        entry["without"] = without
    return entry


def _id(message: ET.Element) -> str:
    return hashlib.sha256("\0".join(messages.key(message)).encode("utf-8")).hexdigest()[:8]


def enter(tree: ET.ElementTree[ET.Element], files: Sequence[Path], language: str) -> tuple[int, int, list[str]]:
    """Enter the translations in slices into a catalogue, and mark them as finished.

    Return the number of translations entered, the number of empty ones, and a line for each one that is refused.
    """
    by_id = {_id(message): message for message in tree.iter("message")}
    entered, empty, refused = 0, 0, []
    for path in files:
        for entry in json.loads(path.read_text("utf-8")):
            given = entry["translation"]
            forms = [given] if isinstance(given, str) else given
            if not any(forms):
                empty += 1
                continue
            message = by_id.get(entry["id"])
            why = "the program no longer has this text" if message is None else _refusal(message, entry, language)
            if message is None or why:
                refused.append(f"{path.name}: {entry['id']} “{entry['source']}”: {why}")
                continue
            messages.fill(message, forms)
            _finish(message, entry.get("without", []))
            entered += 1
    return entered, empty, refused


def _refusal(message: ET.Element, entry: Mapping[str, Any], language: str) -> str:
    """Return the reason why a translation cannot be entered, or "" if it can."""
    source, comment = messages.key(message)
    given = entry["translation"]
    if messages.counts(message) != isinstance(given, list):
        return "a message that counts something has a list of forms, any other a string"
    if messages.counts(message) and (len(given) != len(messages.forms(message)) or not all(given)):
        return f"it needs {len(messages.forms(message))} plural forms"
    many = comment if messages.counts(message) else ""
    without = entry.get("without", [])
    for form in given if isinstance(given, list) else [given]:
        if why := messages.fault(source, form, many):
            return why
        if why := terms.style_fault(form, language):
            return why
        for term in terms.missing(source, form, language, without):
            return f"the term “{term.english}” is not translated as {' or '.join(term.forms)}"
    return ""


def _finish(message: ET.Element, without: Sequence[str]) -> None:
    """Mark a message as translated, and note the terms that it does not use."""
    for name in ("oldsource", "translatorcomment"):
        for element in message.findall(name):
            message.remove(element)
    translation = message.find("translation")
    assert translation is not None
    translation.attrib.pop("type", None)
    if without:
        note = ET.Element("translatorcomment")
        note.text = messages.FREE + ", ".join(without)
        message.insert(list(message).index(translation), note)
