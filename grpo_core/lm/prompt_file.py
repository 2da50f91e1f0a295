"""Reader of the user's prompts and answers in CSV and JSONL files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from grpo_core.errors import Cancelled, GrpoError
from grpo_core.lm.patterns import matcher
from grpo_core.lm.problems import Prompt
from grpo_core.lm.vocabulary import encode
from grpo_core.parsing import ParseError, csv_rows, from_json
from grpo_core.regular_file import read_limited
from grpo_core.shipped import resource
from grpo_core.text import plural, tr

LARGEST = 20_000_000
"""Maximum size of a prompt file in bytes."""
LONGEST_ANSWER = 20_000
"""Maximum number of characters in an answer. Completions have a few dozen."""

PIECE = 64_000
"""Number of characters that are split into lines at a time."""

SHIPPED = "shipped:"
"""Prefix of the names of prompt lists that come with the program."""


def located(file: str) -> Path:
    """Return the path of the prompt file named in the settings, either by its path or by “shipped:” and the name of a
    list that comes with the program.
    """
    return resource("prompts") / file.removeprefix(SHIPPED) if file.startswith(SHIPPED) else Path(file)


def read_prompts(
    path: Path, *, checker: str, longest: int | None, cancelled: Callable[[], bool] = lambda: False
) -> list[Prompt]:
    """Read the prompts of a file, as :func:`each_prompt` does, into a list."""
    return [*each_prompt(path, checker=checker, longest=longest, cancelled=cancelled)]


def each_prompt(
    path: Path, *, checker: str, longest: int | None, cancelled: Callable[[], bool] = lambda: False
) -> Iterator[Prompt]:
    """Yield the prompts of a file with the columns (or keys) “prompt” and “answer”.

    With millions of prompt objects, Python's garbage collector would now and then stop every thread for a third of a
    second. Code that reads a large file in the GUI process should therefore keep the strings instead.

    Args:
        path: a ``.csv`` or ``.jsonl`` file in UTF-8.
        checker: kind of answer: "exact", "number" or "regex".
        longest: maximum number of characters of a prompt for the character model; None for a model whose tokenizer
            reads any text.
        cancelled: called before each prompt.

    Raises:
        Cancelled: ``cancelled()`` returned True.
        GrpoError: the file cannot be used; the message names the file and the line, and says what is wrong and what is
            expected.
    """
    try:
        path = path.expanduser()
        content = read_limited(path, LARGEST)
        if content is None:
            raise GrpoError(
                tr("{name} is larger than {largest} MB; a prompt file is a few kilobytes.").format(
                    name=path.name, largest=LARGEST // 1_000_000
                )
            )
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise GrpoError(tr("{name} is not UTF-8 text; save it as UTF-8.").format(name=path.name)) from None
    except (OSError, RuntimeError, ValueError) as error:  # the last two: an unknown home directory, or an invalid name
        reason = getattr(error, "strerror", None) or str(error).rstrip(".")
        raise GrpoError(
            tr("{path} cannot be read: {reason}. Choose a CSV or JSONL file.").format(path=path, reason=reason)
        ) from None
    rows = _json_lines(path, text) if path.suffix.lower() in (".jsonl", ".ndjson", ".json") else _csv_rows(path, text)
    empty = True
    for line, row in rows:
        if cancelled():
            raise Cancelled(tr("Reading {name} was cancelled.").format(name=path.name))
        yield _checked(path, line, row, checker, longest)
        empty = False
    if empty:
        raise GrpoError(
            tr("{name} contains no prompts; each line needs a prompt and its answer.").format(name=path.name)
        )


def _lines(text: str) -> Iterator[str]:
    """Split ``text`` like ``text.splitlines()``, but in pieces: splitting a large string at once would block all other
    threads.
    """
    begin = 0
    while begin < len(text):
        end = text.find("\n", begin + PIECE) + 1 or len(text)
        yield from text[begin:end].splitlines()
        begin = end


def _csv_rows(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        names, rows = csv_rows(_lines(text))
        if not {"prompt", "answer"} <= set(names):
            columns = ", ".join(names)[:80]
            pattern = (
                tr("{name} has the columns {columns}; it needs “prompt” and “answer”.")
                if columns
                else tr("{name} has no column names in its first line; it needs “prompt” and “answer”.")
            )
            raise GrpoError(pattern.format(name=path.name, columns=columns))
        yield from rows
    except ParseError as error:
        raise GrpoError(
            tr("Line {line_num} of {name} is not CSV ({error}).").format(
                line_num=error.line, name=path.name, error=error
            )
        ) from None


def _json_lines(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for line, content in enumerate(_lines(text), 1):
        if not content.strip():
            continue
        try:
            row = from_json(content)
        except ParseError:
            raise GrpoError(
                tr("Line {line} of {name} is not JSON; each line must be one object.").format(line=line, name=path.name)
            ) from None
        if not isinstance(row, dict):
            raise GrpoError(
                tr('Line {line} of {name} is not an object such as {{"prompt": "2+2=", "answer": "4"}}.').format(
                    line=line, name=path.name
                )
            )
        yield line, row


def _checked(path: Path, line: int, row: dict[str, Any], checker: str, longest: int | None) -> Prompt:
    where = tr("Line {line} of {name}").format(line=line, name=path.name)
    values = [row.get(name) for name in ("prompt", "answer")]
    for name, value in zip(("prompt", "answer"), values, strict=True):
        if isinstance(value, bool) or not isinstance(value, (str, int, float)) or str(value).strip() == "":
            raise GrpoError(
                tr("{where} has no {name}; it needs a prompt and its answer.").format(where=where, name=name)
            )
    prompt, answer = (str(value).strip() for value in values)
    if longest is not None:
        _check_characters(where, prompt, longest)
    if len(answer) > LONGEST_ANSWER:
        raise GrpoError(
            plural(
                "{where}: the answer has {count:,} character; at most {longest:,} are allowed.",
                "{where}: the answer has {count:,} characters; at most {longest:,} are allowed.",
                len(answer),
            ).format(where=where, count=len(answer), longest=LONGEST_ANSWER)
        )
    if checker == "number" and not _is_number(answer):
        raise GrpoError(
            tr("{where}: the answer “{answer}” is not a number; choose another way of checking.").format(
                where=where, answer=answer[:40]
            )
        )
    if checker == "regex":
        try:
            matcher().check(answer)
        except GrpoError as error:
            raise GrpoError(
                tr("{where}: the answer cannot be used: {error}.").format(where=where, error=error)
            ) from None
    return Prompt(prompt, answer)


def _check_characters(where: str, prompt: str, longest: int) -> None:
    """Check that the character model knows all characters of ``prompt`` and that the prompt fits the context.

    Raises:
        GrpoError: one of these checks fails; the message names the location ``where``, and says what is wrong and what
            is expected.
    """
    try:
        tokens = encode(prompt)
    except GrpoError as error:
        raise GrpoError(f"{where}: {error}") from None
    if len(tokens) > longest:
        raise GrpoError(
            plural(
                "{where}: the prompt has {count} character; next to the completion there is room for {longest}. "
                "Shorten it, or choose a shorter completion or a larger context.",
                "{where}: the prompt has {count} characters; next to the completion there is room for {longest}. "
                "Shorten it, or choose a shorter completion or a larger context.",
                len(tokens),
            ).format(where=where, count=len(tokens), longest=longest)
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
