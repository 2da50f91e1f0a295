"""Tests use only public names of the program. The remaining uses of private names are counted and can only decrease."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent
LEFT = {
    "app/stories/test_long_updates.py": 1,
    "app/training/test_failures.py": 2,
    "app/workspace/test_run_manager.py": 1,
    "core/lm/test_patterns.py": 3,
    "core/runs/test_run_file_errors.py": 2,
}
"""File -> number of uses of private names of the program. New uses are not allowed."""
FOREIGN = {"_MEIPASS", "_actions", "_attn_implementation", "_exit", "_mod_uses_pyside", "_replace"}
"""Private names of PyInstaller, argparse, transformers, Python and PySide6."""


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in FOREIGN


def own(tree: ast.Module) -> set[str]:
    """Return the private names that a test file defines itself."""
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                names.add(name)
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
    return names


def used(node: ast.AST) -> Iterator[str]:
    """Yield the names that ``node`` reads from another object or module, or sets there."""
    match node:
        case ast.Attribute(value=ast.Name(id="self" | "cls")):
            return
        case ast.Attribute(attr=name):
            yield name
        case ast.ImportFrom(names=names):
            yield from (alias.name for alias in names)
        case ast.Call(func=ast.Name(id="getattr" | "setattr") | ast.Attribute(attr="setattr"), args=args):
            texts = [one.value for one in args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            yield from (text.rpartition(".")[2] for text in texts)


def uses(source: str) -> list[str]:
    """Return the uses of private names of the program in the source code of a test."""
    tree = ast.parse(source)
    known = own(tree)
    return [name for node in ast.walk(tree) for name in used(node) if private(name) and name not in known]


def test_every_way_to_reach_a_private_name_is_seen() -> None:
    source = """
from app.plotting.export import _plain
class Mine:
    def __init__(self):
        self._own = panel._stack.count() + self._base
monkeypatch.setattr("grpo_core.lm.patterns._started", None)
monkeypatch.setattr(run_file, "_PIECE", 2)
getattr(chart, "_axes"), Mine()._own, sys._MEIPASS, chart.__class__, chart.axes
"""
    assert sorted(uses(source)) == ["_PIECE", "_axes", "_plain", "_stack", "_started"]


def test_no_test_uses_a_private_name_of_the_program_but_those_that_are_counted() -> None:
    paths = sorted(path for path in TESTS.rglob("*.py") if path != Path(__file__))
    found = Counter({str(path.relative_to(TESTS)): len(uses(path.read_text("utf-8"))) for path in paths})
    assert +found == Counter(LEFT), "use a public name; where there are fewer, lower the count"
    assert sum(LEFT.values()) <= 20
