"""Prompts from the rows of a table, whatever its columns are called."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from grpo_core.errors import GrpoError
from grpo_core.lm.final_answer import marked
from grpo_core.lm.problems import Prompt
from grpo_core.parsing import column_name
from grpo_core.text import tr

PROMPTS = ("prompt", "question", "problem", "query", "instruction", "input", "messages", "conversations")
"""Names of columns with prompts. The first that has one counts."""
ANSWERS = (
    "answer", "final_answer", "expected_answer", "ground_truth", "reward_model", "correct", "target", "solution",
    "response", "output",
)  # fmt: skip # table
"""Names of columns with answers. The first that has one counts."""
WORKING = ("solution", "response", "output")
"""Those of them whose text is a working; only an answer that it marks as final, or a single line, can be compared."""
BEFORE = ("body", "context", "passage")
"""Names of columns with a text to which the question refers."""
CHOICES = ("options", "choices")
"""Names of columns with answers to choose from."""
COLUMNS = frozenset((*PROMPTS, *ANSWERS, *BEFORE, *CHOICES))
Found = TypeVar("Found")
ROLES = {"human": "user", "gpt": "assistant"}


def prompt_in(row: Mapping[str, Any], *, whole: bool) -> Prompt:
    """Return the prompt in a row of a table.

    Args:
        row: the values by the names of their columns.
        whole: whether the answer is the entire text of its column, even if this marks a final answer.

    Raises:
        GrpoError: the row has no prompt or no answer; the message is the end of a sentence about it.
    """
    named = {column_name(str(name)): value for name, value in row.items()}
    asked = _first(named, PROMPTS, lambda name, value: _asked(value))
    if asked is None:
        raise GrpoError(tr("has no prompt; it needs a prompt and its answer"))
    text, system, reply = asked
    before = _first(named, BEFORE, lambda name, value: text_of(value)) or ""
    choices = _first(named, CHOICES, lambda name, value: _lines(value)) or []
    place = named.get("answer")
    answer = _first(named, ANSWERS, partial(_answer, whole=whole)) or _answer(WORKING[0], reply, whole=whole)
    if not answer:
        raise GrpoError(tr("has no answer that is a text or a number; it needs a prompt and its answer"))
    if isinstance(place, int) and 0 <= place < len(choices):  # the number of the right one
        answer = choices[place][0]
    parts = [before] * (before not in text) + [text] + [line for line in choices if line not in text]
    return Prompt("\n".join(parts), answer, system)


def _first(named: Mapping[str, Any], names: Sequence[str], read: Callable[[str, Any], Found | None]) -> Found | None:
    """Return what ``read``, given name and value, first finds in the columns ``names``. None if it finds nothing."""
    for name in names:
        if name in named and (found := read(name, named[name])):
            return found
    return None


def text_of(value: object) -> str:
    """Return a text or number as text without spaces around it. Empty for anything else."""
    known = isinstance(value, str | int | float) and not isinstance(value, bool) and value == value  # not NaN
    return str(value).strip() if known else ""


def _asked(value: object) -> tuple[str, str, str] | None:
    """Return prompt, system prompt and reply of a text, or of messages that end with one of the user or its reply."""
    if not isinstance(value, list):
        text = text_of(value)
        return (text, "", "") if text else None
    said = []
    for message in value:
        if not isinstance(message, dict):
            return None
        role = str(message.get("role", message.get("from", "")))
        said.append((ROLES.get(role, role), text_of(message.get("content", message.get("value")))))
    reply = said.pop()[1] if said and said[-1][0] == "assistant" else ""
    system = said.pop(0)[1] if said and said[0][0] == "system" else ""
    if [role for role, _ in said] != ["user"] or not said[0][1]:
        return None
    return said[0][1], system, reply


def _answer(name: str, value: object, *, whole: bool) -> str:
    """Return the answer in the column ``name``. Empty if it has none that can be compared."""
    if name == "reward_model":
        value = value.get("ground_truth") if isinstance(value, dict) else None
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        value = value[0]
    text = text_of(value)
    if whole or name == "correct":
        return text
    final = marked(text)
    return (text if name not in WORKING or "\n" not in text else "") if final is None else final


def _lines(choices: object) -> list[str]:
    """Return the answers to choose from, each with its letter. Empty if there are none, or they have another form."""
    if isinstance(choices, str):
        return [choices]
    texts = [text_of(choice) for choice in choices] if isinstance(choices, list) else []
    labelled = all(text[:1].isalpha() and text[1:2] in (")", ".", ":") for text in texts)
    return texts if labelled else [f"{chr(ord('A') + place)}. {text}" for place, text in enumerate(texts)]
