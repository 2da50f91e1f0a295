r"""The final answer in a text that may contain working, and the comparison of two final answers.

An answer is marked in one of the ways in which published prompts and trained models do it: ``<answer>7</answer>``,
``#### 7``, ``Answer: 7`` or ``\boxed{7}``. These can be nested: ``Answer: $\boxed{7}$``.
"""

from __future__ import annotations

import math
import re

NUMBER = r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d)|-?\d+(?:\.\d+)?"
"""Pattern of a number, possibly with commas between its thousands."""
_TAGS, _HASHES, _BOX = "<answer>", "####", "\\boxed"
_WORD = re.compile(r"\banswer(?: is)?\s*:", re.IGNORECASE)
_NOTATION = re.compile(r"\\left|\\right|\\[!,;: ]|[$\s*]")
_ALONE = re.compile(rf"\+?({NUMBER}|-?\.\d+)\\?%?(?:\([^()]*\))?")


def numbers_in(text: str) -> list[str]:
    """Return the numbers in ``text`` in order, without the commas between their thousands."""
    return [found.replace(",", "") for found in re.findall(NUMBER, text)]


def marked(text: str) -> str | None:
    """Return the last answer that ``text`` marks as final. None if it marks none."""
    part = text
    if _TAGS in part:
        part = part.rpartition(_TAGS)[2].partition("</answer>")[0]
    if _HASHES in part:
        part = part.rpartition(_HASHES)[2]
    if words := [*_WORD.finditer(part)]:
        part = part[words[-1].end() :]
    box = _boxed(part)
    if box is not None or part is text:
        return box
    return next((line.strip() for line in part.splitlines() if line.strip()), "")


def _boxed(text: str) -> str | None:
    r"""Return the content of the last ``\boxed{…}``. None if there is none, or its braces are not closed."""
    _, box, rest = text.rpartition(_BOX)
    rest = rest.lstrip()
    if not box or not rest.startswith("{"):
        return None
    depth = 0
    for place, letter in enumerate(rest):
        depth += (letter == "{") - (letter == "}")
        if not depth:
            return rest[1:place].strip()
    return None


def number(text: str) -> str | None:
    """Return the number that ``text`` is, apart from a currency, a percent sign and a unit in brackets, without commas.

    None if it is something else.
    """
    found = _ALONE.fullmatch(_plain(text).replace("\\", ""))
    return None if found is None else found[1].replace(",", "")


def same(one: str, other: str) -> bool:
    """Return whether two final answers are equal as numbers, or letter by letter apart from spaces and typesetting."""
    a, b = number(one), number(other)
    if a is not None and b is not None:
        return math.isclose(float(a), float(b), rel_tol=1e-9, abs_tol=1e-12)
    return _plain(one) == _plain(other)


def ends_on(text: str, answer: str) -> bool:
    """Return whether the final answer of ``text`` is that of ``answer``.

    Where ``text`` marks none, it is the last number, or the last line if the answer is no number.
    """
    wanted, given = marked(answer) or answer, marked(text)
    if given is None:
        lines = text.strip().splitlines() if number(wanted) is None else numbers_in(text)
        given = lines[-1] if lines else ""
    return bool(_plain(wanted)) and same(given, wanted)


def _plain(text: str) -> str:
    return _NOTATION.sub("", text).replace("dfrac", "frac").replace("tfrac", "frac").removesuffix(".")
