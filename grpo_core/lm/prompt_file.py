"""Reader of the user's prompts and answers: CSV, JSON, lines of JSON, and the tables that parts can read."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, overload

from grpo_core import parts
from grpo_core.errors import GrpoError
from grpo_core.lm.final_answer import number
from grpo_core.lm.patterns import matcher
from grpo_core.lm.problems import Prompt
from grpo_core.lm.prompt_rows import ANSWERS, COLUMNS, PROMPTS, prompt_in
from grpo_core.lm.vocabulary import encode
from grpo_core.parsing import ParseError, column_name, csv_rows, from_json
from grpo_core.regular_file import read_limited
from grpo_core.shipped import resource
from grpo_core.text import plural, tr

LARGEST = 50_000_000
"""Maximum size of a prompt file in bytes."""
LONGEST_ANSWER = 20_000
"""Maximum number of characters in an answer. Completions have a few dozen."""
LEFT_OUT = 0.1
"""Largest share of the rows that can be left out because they cannot be used. A file with more is refused."""

PIECE = 64_000
"""Number of characters that are split into lines at a time."""
POINTER = "version https://git-lfs"
"""The beginning of the file that Git stores in place of a large one."""
IS_POINTER = tr("{name} is a pointer of Git LFS, not the file; run “git lfs pull” in its folder.")

SHIPPED = "shipped:"
"""Prefix of the names of prompt lists that come with the program."""


def located(file: str) -> Path:
    """Return the path of the prompt file of the settings: a path, or “shipped:” and the name of a list."""
    return resource("prompts") / file.removeprefix(SHIPPED) if file.startswith(SHIPPED) else Path(file)


class Prompts(Sequence[Prompt]):
    """A sequence of prompts stored as plain strings. Each :class:`Prompt` is created on access.

    Python's garbage collector does not track strings, so millions of them cost it nothing.

    Args:
        answers: the text of each prompt, and the answer that its checker compares completions with.
        systems: the text of each prompt that has a system prompt, and that.
        left_out: a message about rows of the file that cannot be used. Empty if there are none.
    """

    def __init__(
        self, answers: Mapping[str, str], systems: Mapping[str, str] | None = None, left_out: str = ""
    ) -> None:
        self._texts, self._answers, self._systems = tuple(answers), tuple(answers.values()), systems or {}
        self.left_out = left_out

    def __len__(self) -> int:
        return len(self._texts)

    @overload
    def __getitem__(self, place: int) -> Prompt: ...
    @overload
    def __getitem__(self, place: slice) -> list[Prompt]: ...
    def __getitem__(self, place: int | slice) -> Prompt | list[Prompt]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        text = self._texts[place]
        return Prompt(text, self._answers[place], self._systems.get(text, ""))

    def find(self, text: str) -> Prompt | None:
        """Return the prompt with this text, or None if it does not exist."""
        return self[self._texts.index(text)] if text in self._texts else None


Read: TypeAlias = Callable[..., Prompts]
"""Function that reads a file of prompts, with the arguments of :func:`read_prompts`."""


@dataclass(frozen=True, kw_only=True)
class PromptTable:
    """A kind of prompt file that a part can read.

    Attributes:
        rows: returns the names of all columns of the file at a path, and its rows with those of the given columns.
            It may run only in a process for untrusted files.
        read: reads such a file in a process for untrusted files.
    """

    rows: Callable[[Path, Container[str]], tuple[Sequence[str], Iterable[Mapping[str, Any]]]]
    read: Read


def table_for(path: Path) -> PromptTable | None:
    """Return how a part reads the prompt file at ``path``. None if its kind is read here."""
    table: PromptTable | None = parts.merged("prompt_tables").get(path.suffix.lower())
    return table


def read_prompts(
    path: Path, *, checker: str, longest: int | None, poll: Callable[[], object] = lambda: None
) -> Prompts:
    """Read the prompts of a file, without duplicates. Columns can have any of the usual names (:mod:`.prompt_rows`).

    Args:
        path: a CSV file or, with a name that says so, JSON, a JSON object per line or a table of :func:`table_for`.
        checker: kind of answer, a key of :data:`grpo_core.lm.rewards.CHECKERS`.
        longest: maximum number of characters of a prompt for the character model; None for a model whose tokenizer
            reads any text.
        poll: called before each row; may raise to stop.

    Raises:
        GrpoError: the file, or more than a tenth of its rows, cannot be used; the message names the file and the first
            such line, and says what is wrong and what is expected.
    """
    answers, systems = dict[str, str](), dict[str, str]()
    first, used, left_out = "", 0, 0
    for where, row in _rows(path):
        poll()
        try:
            prompt = _checked(where, row, checker, longest)
        except GrpoError as error:
            first, left_out = first or str(error), left_out + 1
        else:
            used += 1
            answers[prompt.text] = prompt.answer
            if prompt.system:
                systems[prompt.text] = prompt.system
    count = plural("{count} of {total} prompts cannot be used.", "{count} of {total} prompts cannot be used.", left_out)
    count = count.format(count=left_out, total=left_out + used)
    if left_out > LEFT_OUT * (used + left_out):
        raise GrpoError(f"{first} {count}" if left_out > 1 else first)
    if not used:
        raise GrpoError(
            tr("{name} contains no prompts; each line needs a prompt and its answer.").format(name=path.name)
        )
    return Prompts(answers, systems, f"{count} {first}" if left_out else "")


def _rows(path: Path) -> Iterator[tuple[str, object]]:
    """Yield the place of each row, as the beginning of a sentence, and the row, or the error if it is not JSON.

    Raises:
        GrpoError: the file cannot be read, or lacks a column.
    """
    table = table_for(path)
    if table is not None:
        names, rows = table.rows(path.expanduser(), COLUMNS)
        _check_columns(path, names)
        yield from _numbered(path, rows)
        return
    text = _text(path)
    if path.suffix.lower() not in (".jsonl", ".ndjson", ".json"):
        yield from _csv_rows(path, text)
    elif text.lstrip()[:1] == "[":
        try:
            yield from _numbered(path, from_json(text))
        except ParseError as error:
            raise GrpoError(NO_JSON.format(line=error.line, name=path.name)) from None
    else:
        for line, content in enumerate(_lines(text), 1):
            if content.strip():
                yield tr("Line {line} of {name}").format(line=line, name=path.name), _parsed(content)


def _parsed(content: str) -> object:
    try:
        return from_json(content)
    except ParseError as error:
        return error


def _text(path: Path) -> str:
    """Return the text of a file.

    Raises:
        GrpoError: it cannot be read, or is something else.
    """
    try:
        content = read_limited(path.expanduser(), LARGEST)
        if content is None:
            raise GrpoError(
                tr("{name} is larger than {largest} MB, the limit for a prompt file.").format(
                    name=path.name, largest=LARGEST // 1_000_000
                )
            )
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise GrpoError(tr("{name} is not UTF-8 text; save it as UTF-8.").format(name=path.name)) from None
    except (OSError, RuntimeError, ValueError) as error:  # the last two: an unknown home directory, or an invalid name
        reason = getattr(error, "strerror", None) or str(error).rstrip(".")
        raise GrpoError(
            tr("{path} cannot be read: {reason}. Choose a CSV, JSON, JSONL or Parquet file.").format(
                path=path, reason=reason
            )
        ) from None
    if text.startswith(POINTER):
        raise GrpoError(IS_POINTER.format(name=path.name))
    return text


NO_JSON = tr("Line {line} of {name} is not JSON; the file must be an array of objects, or an object per line.")


def _numbered(path: Path, rows: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    for place, row in enumerate(rows, 1):
        yield tr("Row {place} of {name}").format(place=place, name=path.name), row


def _check_columns(path: Path, names: Sequence[str]) -> None:
    known = set(map(column_name, names))
    if known.isdisjoint(PROMPTS) or known.isdisjoint(ANSWERS):
        columns = ", ".join(names)[:80]
        pattern = (
            tr("{name} has the columns {columns}; it needs {wanted}.")
            if columns
            else tr("{name} has no column names in its first line; it needs {wanted}.")
        )
        wanted = tr("a column of prompts ({prompts} …) and one of answers ({answers} …)")
        listed = wanted.format(prompts=", ".join(PROMPTS[:3]), answers=", ".join(ANSWERS[:2]))
        raise GrpoError(pattern.format(name=path.name, columns=columns, wanted=listed))


def _lines(text: str) -> Iterator[str]:
    """Split ``text`` into lines, with their breaks, in pieces: a large string at once would block all other threads."""
    begin = 0
    while begin < len(text):
        end = text.find("\n", begin + PIECE) + 1 or len(text)
        yield from io.StringIO(text[begin:end], newline="")
        begin = end


def _csv_rows(path: Path, text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        names, rows = csv_rows(_lines(text))
        _check_columns(path, names)
        for line, row in rows:
            yield tr("Line {line} of {name}").format(line=line, name=path.name), row
    except ParseError as error:
        raise GrpoError(
            tr("Line {line_num} of {name} is not CSV ({error}).").format(
                line_num=error.line, name=path.name, error=error
            )
        ) from None


def _checked(where: str, row: object, checker: str, longest: int | None) -> Prompt:
    """Return the prompt in a row.

    Raises:
        GrpoError: it cannot be used; the message begins with the place ``where``.
    """
    if isinstance(row, ParseError):
        raise GrpoError(tr("{where} is not JSON; each line must be one object.").format(where=where))
    if not isinstance(row, dict):
        raise GrpoError(tr('{where} is not an object such as {{"prompt": "2+2=", "answer": "4"}}.').format(where=where))
    try:
        prompt = prompt_in(row, whole=checker == "regex")
    except GrpoError as error:
        raise GrpoError(f"{where} {error}.") from None
    answer = prompt.answer
    if longest is not None:
        _check_characters(where, prompt.text, longest)
    if len(answer) > LONGEST_ANSWER:
        raise GrpoError(
            plural(
                "{where}: the answer has {count:,} character; at most {longest:,} are allowed.",
                "{where}: the answer has {count:,} characters; at most {longest:,} are allowed.",
                len(answer),
            ).format(where=where, count=len(answer), longest=LONGEST_ANSWER)
        )
    if checker == "number" and not _is_number(answer):
        plain = number(answer)
        if plain is None:
            raise GrpoError(
                tr("{where}: the answer “{answer}” is not a number; choose another way of checking.").format(
                    where=where, answer=answer[:40]
                )
            )
        return dataclasses.replace(prompt, answer=plain)
    if checker == "regex":
        try:
            matcher().check(answer)
        except GrpoError as error:
            raise GrpoError(
                tr("{where}: the answer cannot be used: {error}.").format(where=where, error=error)
            ) from None
    return prompt


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
