"""Tests of the layers: all imports lead downwards, even for type checking, and the core needs no heavy libraries."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
FLOORS = (
    (
        "errors",
        "plugins",
        "parts",
        "arrays",
        "csv_file",
        "shipped",
        "text",
        "regular_file",
        "parsing",
        "rounding",
        "progress",
        "versions",
    ),
    ("child", "config", "assignments", "update_time", "typeset", "expression", "shapes"),
    ("kl", "levels", "reductions", "baselines", "deviations"),
    ("advantages", "surrogates", "record"),
    ("objective",),
    ("recompute", "acting"),
    ("bandit",),
    ("premises",),
    ("claims",),
    ("metrics", "questions", "texts", "memory", "snapshot_file", "leading"),
    ("lm", "evaluated_step"),
    ("experiments",),
    ("explain", "reasons", "step_table", "breakpoints", "learners", "runs"),
    ("export", "host"),
    ("what_if",),
    ("queue", "packing"),
    ("foreign",),
    ("jobs",),
    ("commands", "testing"),
    ("trainers", "teaching", "traces"),
    ("__main__",),
)
"""Rooms of grpo_core, in layers from the lowest. A room can import from its own layer and from those below."""

APP_FLOORS = (
    ("clock", "parts"),
    ("arguments", "boxes", "build", "display", "examples", "folders", "garbage", "jobs", "resources", "training"),
    ("language", "theme"),
    ("formula", "plotting"),
    ("help", "workspace"),
    ("settings", "token_grid", "widgets"),
    ("crash", "experiments"),
    ("messages", "panels"),
    ("part", "sessions"),
    ("panel_registry",),
    ("export", "window"),
    ("controllers",),
    ("commands",),
    ("application",),
    ("self_test",),
    ("headless",),
    ("start",),
    ("__main__",),
    ("teaching", "trainers"),
)
"""Rooms of app, in layers from the lowest. A room can import from itself and from the layers below its own."""

REAL_TIME = {
    "app/clock.py",
    "app/crash/watchdog.py",
    "app/teaching/export/lesson_stage.py",
    "app/export/pictures.py",
    "app/self_test/driving.py",
    "app/training/controller.py",
    "app/training/deadlines.py",
    "app/training/host.py",
    "app/workspace/evolution.py",
    "app/workspace/frame.py",
}
"""Files that use timers or times directly: the clock itself, code that waits for another process or thread, and code
that measures the duration of a frame."""

LIGHT = tuple(
    f"grpo_core.lm.{name}"
    for name in (
        "vocabulary", "problems", "pattern_process", "patterns", "final_answer", "prompt_rows", "prompt_file",
        "kept_prompts", "rewards",
        "recorded_answers", "word_tasks", "interface", "packing", "passes", "sampling",
        "batches", "calculator", "characters", "checkpoint_file",
        "numpy_engine.numpy_policy", "numpy_engine.optimizer", "numpy_engine.sampler", "numpy_engine.threads",
        "numpy_engine.transformer", "numpy_engine.weights",
    )
)  # fmt: skip # table, one row per line
LIGHT += tuple(
    f"grpo_core.trainers.hf.{name}"
    for name in ("adapter_files", "folder", "memory", "reading", "refusal", "tensors", "trl_script")
)
"""Modules of the language models that do not need torch: text, prompts, rewards, the NumPy engine, and checks of a
model's folder."""
WITH_TORCH = ("grpo_core.lm", "grpo_core.trainers.hf")
"""Parts of which only the files in ``LIGHT`` do not import torch."""
HEAVY = {
    "torch",
    "transformers",
    "peft",
    "pyarrow",
    "PySide6",
    "shiboken6",
    "pyqtgraph",
    "psutil",
    "tqdm",
    "platformdirs",
    "ziamath",
}
APART = {"grpo_core.trainers.importers.parquet", "grpo_core.traces.recorders.trl", "grpo_core.traces.recorders.verl"}
"""Files that import a heavy library, or are imported only when needed: the reader of Parquet, and the
recorders, which run in another trainer's process and do not depend on the rest."""


def files(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


class Import(NamedTuple):
    """An import in a file: the module, whether it is inside a function, and whether it is only for type checking."""

    module: str
    lazy: bool
    typing: bool


def imports(path: Path, *, lazy: bool = True, typing: bool = True) -> tuple[str, ...]:
    """Return the modules that a file imports, with or without imports inside functions and those for type checking."""
    return tuple(one.module for one in every_import(path) if (lazy or not one.lazy) and (typing or not one.typing))


@cache
def every_import(path: Path) -> tuple[Import, ...]:
    return tuple(_imports(path, ast.parse(path.read_text(encoding="utf-8"))))


def _imports(path: Path, tree: ast.AST) -> Iterator[Import]:
    waiting = [(tree, False, False)]
    while waiting:
        node, lazy, typing = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            waiting += [(child, lazy, True) for child in node.body]
            waiting += [(child, lazy, typing) for child in node.orelse]
            continue
        lazy |= isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, lazy, typing) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield from (Import(f"{node.module}.{alias.name}", lazy, typing) for alias in node.names)
        waiting += [(child, lazy, typing) for child in ast.iter_child_nodes(node)]


def inside(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def inside_any(module: str, packages: tuple[str, ...]) -> bool:
    return any(inside(module, package) for package in packages)


def part_of(module: str) -> str:
    """Return the part that a module belongs to, or an empty text for the lab.

    The recorders belong to a part, although they keep the path from which people copy them.
    """
    room = [*module.split("."), ""][1]
    return {"teaching": "teaching", "trainers": "trainers", "traces": "trainers"}.get(room, "")


def floor_of(module: str) -> int:
    """Return the index of the layer of a module of grpo_core."""
    room = module.split(".")[1] if "." in module else ""
    if not room or room == "__version__":
        return 0  # the package itself or one of its names
    assert room in {room for rooms in FLOORS for room in rooms}, f"grpo_core.{room} has no floor: place it in FLOORS"
    return next(index for index, rooms in enumerate(FLOORS) if room in rooms)


@pytest.mark.parametrize("package", ["grpo_core", "app"])
def test_the_lab_imports_no_part_and_no_part_imports_another(package: str) -> None:
    for path in files(package):
        own = part_of(module_name(path))
        for module in imports(path):
            if inside_any(module, ("app", "grpo_core")):
                assert part_of(module) in ("", own), f"{module_name(path)} imports {module}"


def test_only_the_lists_of_parts_name_a_part() -> None:
    named = re.compile(r"(app|grpo_core)\.(teaching|trainers)\b")
    lists = {"app/parts.py", "grpo_core/parts.py"}
    for path in (*files("app"), *files("grpo_core")):
        if not part_of(module_name(path)) and str(path.relative_to(ROOT)) not in lists:
            strings = (
                node.value
                for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
                if isinstance(node, ast.Constant)
            )
            code = [text for text in strings if isinstance(text, str) and named.fullmatch(text)]
            assert not code, f"{path} names {code}"


def test_the_core_imports_downwards_and_knows_no_window() -> None:
    for path in files("grpo_core"):
        own = floor_of(module_name(path))
        for module in imports(path):
            top = module.split(".")[0]
            assert top != "app", f"{module_name(path)} imports {module}"
            if module_name(path) not in APART:
                assert top not in HEAVY - {"torch", "transformers", "peft", "tqdm"}, (
                    f"{module_name(path)} imports {module}"
                )
            heavy = inside_any(module_name(path), WITH_TORCH) and module_name(path) not in LIGHT
            heavy |= module_name(path) in APART
            assert top not in ("torch", "safetensors", "transformers", "peft") or heavy, (
                f"{module_name(path)} imports {module}"
            )
            if top == "grpo_core" and module_name(path) != "grpo_core":  # which imports its names on demand
                assert floor_of(module) <= own, f"{module_name(path)} reaches up to {module}"


def test_a_claim_is_checked_without_anything_that_makes_sentences() -> None:
    tables = ("baselines", "deviations", "kl", "reductions", "surrogates")
    arrays = ("claims", "config", "premises", "recompute", "record", "rounding", "text", "typeset", *tables)
    for path in files("grpo_core/claims"):
        for module in imports(path):
            allowed = tuple(f"grpo_core.{room}" for room in arrays)
            assert (
                not inside_any(module, ("app", "grpo_core"))
                or module == "grpo_core.recompute"
                or (inside_any(module, allowed))
            ), f"{path} imports {module}"


def app_room(module: str) -> str:
    """Return the part of app that a module belongs to: the first component of its name below app."""
    return module.partition(".")[2].partition(".")[0]


def app_floor(room: str) -> int:
    """Return the index of the layer of a part of app."""
    return next(index for index, rooms in enumerate(APP_FLOORS) if room in rooms)


def test_every_room_of_the_window_stands_on_one_floor() -> None:
    placed = [room for rooms in APP_FLOORS for room in rooms]
    assert len(placed) == len(set(placed))
    assert set(placed) == {app_room(module_name(path)) for path in files("app")} - {""}


def test_the_window_imports_downwards() -> None:
    known = {module_name(other) for other in files("app")}
    for path in files("app"):
        own = app_room(module_name(path))
        for name in imports(path):
            if inside(name, "app"):
                room = app_room(name if name in known else name.rpartition(".")[0])
                assert room == own or app_floor(room) < app_floor(own), f"{module_name(path)} reaches up to {name}"


@pytest.mark.parametrize("package", ["grpo_core", "app"])
def test_no_two_files_import_each_other(package: str) -> None:
    known = {module_name(path): path for path in files(package)}
    graph: dict[str, set[str]] = {}
    for name, path in known.items():
        targets = {module if module in known else module.rpartition(".")[0] for module in imports(path)}
        graph[name] = (targets & known.keys()) - {name}
    # a package's __init__ imports from its own files; imports of the package by these files are not a cycle
    for name in graph:
        graph[name] = {target for target in graph[name] if not inside(name, target)}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the cycle


def test_the_window_never_imports_torch() -> None:
    for path in files("app"):
        for module in imports(path):
            assert not inside(module, "torch"), f"{module_name(path)} imports {module}"
        for module in imports(path, lazy=False, typing=False):
            light = any(inside(module, name) for name in LIGHT)
            assert light or not inside_any(module, WITH_TORCH), (
                f"{module_name(path)} imports {module}, and with it torch"
            )


def test_importing_the_core_imports_numpy_and_array_api_compat_only() -> None:
    modules = [module_name(path) for path in files("grpo_core")]
    apart = (*WITH_TORCH, "grpo_core.commands.cli", "grpo_core.__main__")
    light = [module for module in modules if not inside_any(module, apart)]
    light += LIGHT
    assert "grpo_core.objective" in light
    code = (
        "import importlib, sys\n"
        "before = set(sys.modules)\n"
        "for name in sys.argv[1:]: importlib.import_module(name)\n"
        "print(*sorted({m.partition('.')[0] for m in set(sys.modules) - before} - set(sys.stdlib_module_names)))"
    )
    command = [sys.executable, "-c", code, *light]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) <= {"grpo_core", "numpy", "array_api_compat"}


def test_what_waits_in_the_window_waits_by_its_clock() -> None:
    own = re.compile(r"\bQTimer\b|\btime\.monotonic\b|\bperf_counter\b")
    found = {str(path.relative_to(ROOT)) for path in files("app") if own.search(path.read_text(encoding="utf-8"))}
    assert found == REAL_TIME


@pytest.mark.parametrize(
    ("name", "only"),
    [("csv.writer", "grpo_core/csv_file.py"), ("QFileDialog.get", "app/theme/file_dialogs.py")],
    ids=["tables that a spreadsheet does not run", "dialogs that only choose"],
)
def test_what_must_be_asked_for_in_one_way_is_called_in_one_place(name: str, only: str) -> None:
    sources = (path for room in ("app", "grpo_core") for path in (ROOT / room).rglob("*.py"))
    assert [str(path.relative_to(ROOT)) for path in sources if name in path.read_text(encoding="utf-8")] == [only]
