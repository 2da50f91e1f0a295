"""Check the English of docstrings and names: ``python -m tools.wording``, a part of ``make lint``.

The first sentence of a docstring is in the imperative or a noun phrase that can stand alone: it does not begin with a
question word, has no clause after a semicolon, and ends with a full stop. Some words have had too many meanings in this
code; no new name or docstring may contain them. Earlier occurrences are counted in ``wording_baseline.txt``, by file.
These counts may only decrease, and the check asks to lower them when they have (``python -m tools.wording --lower``).
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
BASELINE = ROOT / "tools" / "wording_baseline.txt"
PACKAGES = ("app", "grpo_core", "tools", "benchmarks")
QUESTIONS = re.compile(r"(What|How|Why|Where|Which|When|By (how|when|what|which))\b")
WORN = {
    "calm(ly)?": "throttled, idle",
    "dress(es|ed|ing)?": "apply_style, restyle",
    "let(s|ting)?_go": "release, close, dispose, discard",
    "rooms?": "space, width, folder, package",
    "seen": "visible, shown, read",
    "stands?(?!_(for|in|alone)(_|$))": "is, is shown, is placed",
}
"""Words with too many meanings in this code, and the usual words to use instead. They are patterns of lower-case words
joined by underscores.
"""
FINE_IN_PROSE = ("calm(ly)?", "rooms?", "seen")
"""Words of :data:`WORN` that are plain English in a sentence."""
Counts = dict[str, int]


@dataclass(frozen=True, order=True)
class Finding:
    """A violation of a rule.

    Attributes:
        line: line number, counted from 1.
        sentence: says what is wrong in that line, and what would be right.
    """

    line: int
    sentence: str


def findings(source: str) -> list[Finding]:
    """Return the violations in the source of a Python file, in order.

    Raises:
        SyntaxError: ``source`` is not Python.
    """
    found: list[Finding] = []
    in_prose = [pattern for pattern in WORN if pattern not in FINE_IN_PROSE]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                line = node.body[0].lineno
                found += [Finding(line, one) for one in (*wrong_first_line(text), *_worn(text, in_prose))]
        found += [Finding(line, one) for name, line in _defined(node) for one in _worn(name, WORN)]
    return sorted(found)


def wrong_first_line(docstring: str) -> Iterator[str]:
    """Yield a message for each violation in the first sentence of ``docstring``."""
    summary = " ".join(docstring.split("\n\n")[0].split())
    first = re.split(r"(?<=\.)\s", summary, maxsplit=1)[0]
    question = QUESTIONS.match(first)
    if question:
        yield f"“{question[0]} …” is no summary: begin with a verb in the imperative, or with a noun."
    if ";" in first:
        yield "A clause hangs on the first sentence by a semicolon: make it a sentence of its own."
    if not summary.endswith((".", ":")):
        yield "The first paragraph does not end with a full stop."


def _worn(text: str, patterns: Iterable[str]) -> Iterator[str]:
    """Yield a message for each word of :data:`WORN` in a docstring or a name."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+", "_", text).lower()
    for pattern in patterns:
        found = re.search(rf"(?<![a-z0-9]){pattern}(?![a-z0-9])", words)
        if found:
            yield f"“{found[0].replace('_', ' ')}” has too many meanings in this code; instead: {WORN[pattern]}."


def _defined(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the names that ``node`` itself defines, with their lines. Local variables of functions are left out."""
    match node:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name, node.lineno
        case ast.arg(arg=name) | ast.Attribute(attr=name, ctx=ast.Store()):
            yield name, node.lineno
    if isinstance(node, ast.Module | ast.ClassDef):
        for statement in node.body:
            targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
            yield from ((one.id, one.lineno) for one in targets if isinstance(one, ast.Name))


def check(found: Mapping[str, list[Finding]], allowed: Mapping[str, int]) -> list[str]:
    """Return a line for each file with more or fewer findings than ``allowed``. Both are given by file path."""
    told: list[str] = []
    for path in sorted({*found, *allowed}):
        here, before = found.get(path, []), allowed.get(path, 0)
        if len(here) > before:
            told += [f"{path}:{one.line}: {one.sentence}" for one in here]
            told.append(f"{path}: {len(here)} such places, and {before} were there before.")
        elif len(here) < before:
            told.append(f"{path}: {len(here)} such places instead of {before}: python -m tools.wording --lower")
    return told


def lowered(counts: Mapping[str, int], allowed: Mapping[str, int]) -> Counts:
    """Return the counts to allow from now on: never more than before, and without files that have no findings."""
    least = {path: min(count, counts.get(path, 0)) for path, count in allowed.items()}
    return {path: count for path, count in sorted(least.items()) if count}


def read_baseline(text: str) -> Counts:
    """Return the counts in a baseline, which has a number and a path on each line that is not a comment.

    Raises:
        ValueError: a line has another form.
    """
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]
    return {path: int(count) for count, path in lines}


def written_baseline(counts: Mapping[str, int]) -> str:
    """Return the content of a baseline file."""
    head = "# Places that break a rule of tools/wording.py, by file. They only become fewer; moved files keep theirs.\n"
    return head + "".join(f"{count} {path}\n" for path, count in sorted(counts.items()))


def main(arguments: list[str]) -> int:
    """Check the tree, or lower the baseline. Return the exit status: 1 if a file differs from the baseline.

    ``--lower`` without a baseline writes one with all current findings.
    """
    found = {
        path.relative_to(ROOT).as_posix(): findings(path.read_text("utf-8"))
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
    }
    counts = {path: len(places) for path, places in found.items() if places}
    allowed = read_baseline(BASELINE.read_text("utf-8")) if BASELINE.exists() else dict(counts)
    if arguments == ["--lower"]:
        allowed = lowered(counts, allowed)
        BASELINE.write_text(written_baseline(allowed), "utf-8")
    told = check(found, allowed)
    print("\n".join(told) if told else f"Wording: {sum(counts.values())} places left in {len(counts)} files, none new.")
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
