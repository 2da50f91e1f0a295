"""What other people wrote is parsed in the process for untrusted files or with limits, and nowhere else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from grpo_core.foreign.answers import Sources, files_table

ROOT = Path(__file__).parents[1]
PARSERS = {
    "json": {"load", "loads", "JSONDecoder"}, "tomllib": {"load", "loads"}, "csv": {"reader", "DictReader"},
    "zipfile": {"ZipFile"}, "pickle": {"load", "loads", "Unpickler"}, "marshal": {"load", "loads"},
    "xml.etree.ElementTree": {"parse", "fromstring", "XML", "XMLParser"}, "yaml": {"load", "safe_load"},
    "latex2mathml.converter": {"convert", "convert_to_element"},
}  # fmt: skip # table
"""Module -> its functions that parse."""
LIMITED = "grpo_core.parsing"
HF = "grpo_core.trainers.hf."
REQUESTED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "session": (("session",), ("grpo_core.runs.session",)),
    "run file": (("converted_run",), ("grpo_core.runs.",)),
    "prompt file": (("prompts",), ()),
    "recorded run": (
        ("known", "open", "refresh", "recorded_series", "examination", "swept", "columns"),
        ("grpo_core.trainers.importers.",),
    ),
    "folder of a model": (
        ("model",),
        (f"{HF}adapter_files", f"{HF}folder", f"{HF}tensors", "grpo_core.trainers.token_text"),
    ),
}
"""Everything from other people that the process for untrusted files reads -> the requests to it
(:func:`grpo_core.foreign.answers.files_table`), and the modules, or packages with a dot at the end, that parse it there
by any parser.
"""
HERE = {
    "settings": "grpo_core.config.reading", "SLURM file": "grpo_core.jobs.slurm",
    "answer of a cluster": "grpo_core.jobs.cluster_calls", "scores": "grpo_core.trainers.reweighting",
    "lesson": "grpo_core.teaching.lessons.reading", "homework": "grpo_core.teaching.homework.file",
}  # fmt: skip # table
"""Everything from other people that is read by the functions of :data:`LIMITED` alone -> the module that does."""
OWN = {
    "app.build": "shipped", "app.formula.render": "shipped", "app.help.shipped_rows": "shipped",
    "app.self_test.drawn": "shipped", "app.self_test.golden": "shipped", "app.teaching.lessons.catalogue": "shipped",
    "grpo_core.lm.recorded_answers": "shipped", "grpo_core.lm.checkpoint_file": "shipped",
    "app.crash.safe_mode": "own file", "app.folders": "own file",
    "app.settings.layouts": "own file", "app.settings.preferences": "own file",
    "app.teaching.lessons.progress": "own file", "app.teaching.teaching": "own file",
    "grpo_core.queue.queue": "own file", "grpo_core.update_time": "own file",
    "grpo_core.questions": "run file", "grpo_core.export.tables": "own settings",
    "grpo_core.trainers.hf.model_card": "own settings", "grpo_core.child.start": "own process",
    "grpo_core.plugins": "own process", "grpo_core.testing.surrogates": "formulas of a row under test",
    "grpo_core.child.wire": "messages, with limits",
    "app.teaching.export.page.markup": "formulas, rebuilt from a list of elements",
}  # fmt: skip # table
"""Modules that parse something else -> what it is."""


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Yield the name and the syntax tree of each module of the program."""
    for file in sorted([*ROOT.glob("app/**/*.py"), *ROOT.glob("grpo_core/**/*.py")]):
        name = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        if ".recorders." not in name:  # they run in other programs
            yield name, ast.parse(file.read_text("utf-8"))


def parsers_in(tree: ast.Module) -> set[str]:
    """Return the parsers that a module imports or names, as “module.function”."""
    found, known = set[str](), dict[str, str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in PARSERS:
            found |= {f"{node.module}.{one.name}" for one in node.names if one.name in PARSERS[node.module]}
        elif isinstance(node, ast.Import):
            known |= {one.asname or one.name: one.name for one in node.names if one.name in PARSERS}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = known.get(node.value.id)
            if module and node.attr in PARSERS[module]:
                found.add(f"{module}.{node.attr}")
    return found


def may_parse(name: str) -> bool:
    """Return whether a module may use any parser."""
    inside = [module for _, parsing in REQUESTED.values() for module in parsing]
    listed = any(name.startswith(module) if module.endswith(".") else name == module for module in inside)
    return listed or name == LIMITED or name in OWN


@pytest.mark.needs_part("trainers", "teaching")
def test_what_other_people_wrote_passes_the_gate() -> None:
    using = {name: found for name, tree in modules() if (found := parsers_in(tree))}
    assert {name: found for name, found in using.items() if not may_parse(name)} == {}
    assert OWN.keys() <= using.keys()
    assert not any(found & {"pickle.load", "pickle.loads", "pickle.Unpickler"} for found in using.values())


@pytest.mark.needs_part("trainers", "teaching")
def test_the_list_names_requests_and_modules_that_exist() -> None:
    known = {name for name, _ in modules()}
    for module in (*HERE.values(), *(module for _, parsing in REQUESTED.values() for module in parsing)):
        assert module.rstrip(".") in known, module
    asked = {request for requests, _ in REQUESTED.values() for request in requests}
    other = {"enclose", "probe", "vocabulary", "notes", "step", "completions", "measured", "reports"}
    assert {*Sources().table(), *files_table()} - asked == other | {"stamps", "losses", "incomplete"}
    assert asked <= {*Sources().table(), *files_table()}


@pytest.mark.parametrize(
    ("source", "parsers"),
    [
        ("import json\njson.loads('1')", {"json.loads"}),
        ("import tomllib as t\nread = t.loads", {"tomllib.loads"}),
        ("def f():\n    from pickle import loads", {"pickle.loads"}),
        ("import json\njson.dumps(1)", set()),
    ],
)
def test_a_parser_is_found_however_it_is_named(source: str, parsers: set[str]) -> None:
    assert parsers_in(ast.parse(source)) == parsers
