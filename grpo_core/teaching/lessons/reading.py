"""Parser of lesson files: from TOML to a :class:`Lesson`, with errors that name file, line, key and valid values."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from pathlib import Path

from grpo_core.parsing import ParseError, from_toml
from grpo_core.regular_file import read_limited
from grpo_core.teaching.lessons.lesson import Lesson, Teaching, Word
from grpo_core.teaching.lessons.steps import Offer, Steps, Vocabulary
from grpo_core.teaching.lessons.table import LessonError, Source, Table
from grpo_core.text import tr

LARGEST = 64 * 1024
"""Maximum size of a lesson file in bytes."""
DIGITS = 16
"""Number of hexadecimal digits of a lesson's digest."""
_ID = re.compile(r"[a-z][a-z0-9_]*")


def load_lesson(path: Path, vocabulary: Vocabulary) -> Lesson:
    """Load the lesson in a file.

    Raises:
        LessonError: the message names the file, the line, what is wrong and what would be valid.
    """
    try:
        content = read_limited(path, LARGEST)
        if content is None:
            raise LessonError(
                path.name,
                1,
                tr("the file is larger than {largest:,} bytes; a lesson must be a short text").format(largest=LARGEST),
            )
        text = content.decode("utf-8")
    except OSError as error:
        raise LessonError(
            path.name, 1, tr("the file cannot be read: {strerror}").format(strerror=error.strerror)
        ) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise LessonError(path.name, line, tr("this is not UTF-8; save the file as UTF-8")) from None
    return read_lesson(path, text, vocabulary)


def read_lesson(path: Path, text: str, vocabulary: Vocabulary) -> Lesson:
    """Parse a lesson from the text of a file. ``path`` is used in errors.

    Raises:
        LessonError: the message names the file, the line, what is wrong and what would be valid.
    """
    source = Source(path, text)
    try:
        data = from_toml(text)
    except ParseError as error:
        why = tr("this is not TOML ({reason})").format(reason=error) if error.misplaced else str(error)
        raise LessonError(path.name, error.line, why) from None
    digest = hashlib.sha256("\n".join(text.splitlines()).encode("utf-8")).hexdigest()[:DIGITS]
    return replace(_lesson(Table(source, (), data), vocabulary), digest=digest)


def _lesson(t: Table, vocabulary: Vocabulary) -> Lesson:
    id = t.text("id")
    if not _ID.fullmatch(id):
        raise t.error(
            "id",
            tr("“{id}” is not a valid id; use lower-case letters, digits and _, beginning with a letter").format(id=id),
        )
    title = t.text("title")
    if not title.endswith("?"):
        raise t.error("title", tr("a title must be a question and end with “?”"))
    name = t.text("interactive", "")
    if name and name not in vocabulary.interactives:
        t.word("interactive", sorted(vocabulary.interactives))
    words = _words(t.table("words", {}))
    reader = Steps(t, vocabulary, vocabulary.interactives.get(name, Offer()), {*words, *vocabulary.terms})
    lesson = Lesson(
        id=id,
        number=t.whole("number"),
        title=tr(title),
        gist=t.said("gist", ""),
        interactive=name,
        start=reader.start,
        steps=reader.steps,
        words=words,
        sources=t.texts("sources", ()),
        teaching=_teaching(t.table("teaching")) if "teaching" in t else None,
        covers=t.texts("covers", ()),
    )
    t.done()
    if lesson.steps[0].predict is not None:
        raise t.source.error(
            ("steps", 0, "predict"), tr("the first step must show something; ask a question in a later one")
        )
    if not lesson.questions:
        raise t.error("", tr("the lesson has no question; at least one step needs one, [steps.predict]"))
    return lesson


def _teaching(t: Table) -> Teaching:
    teaching = Teaching(
        misconception=t.said("misconception"),
        say=t.said("say"),
        disagrees=t.said("disagrees"),
        analogy=t.said("analogy", ""),
    )
    t.done()
    return teaching


def _words(t: Table) -> dict[str, Word]:
    words = {}
    for term in t:
        entry = t.table(term)
        words[term.casefold()] = Word(
            hover=entry.said("hover"), click=entry.said("click", ""), latex=entry.any("latex", "")
        )
        if not isinstance(words[term.casefold()].latex, str):
            raise entry.error("latex", tr("this must be text"))
        entry.done()
    return words
