"""Tests of the parts: what they contribute is known to the lab, and one that fails does not stop the others."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType

import pytest

from app import parts as window_parts
from grpo_core import parts

HALVES = [(parts.PARTS, parts.TABLES), (window_parts.PARTS, window_parts.TABLES)]


@pytest.mark.parametrize(("listed", "tables"), HALVES, ids=["core", "window"])
def test_every_public_function_of_a_part_is_the_name_of_a_table(
    listed: Mapping[str, str], tables: Sequence[str]
) -> None:
    used = set()
    for name in listed.values():
        module = import_module(name)
        public = {one for one, value in vars(module).items() if inspect.isfunction(value) and value.__module__ == name}
        public = {one for one in public if not one.startswith("_")}
        assert public <= set(tables), name
        used |= public
    assert used == set(tables), "a table to which no part contributes"


def test_both_halves_list_the_same_parts() -> None:
    assert set(parts.PARTS) == set(window_parts.PARTS)
    assert set(parts.COMMANDS) | set(window_parts.COMMANDS) <= set(parts.PARTS)


def test_the_names_of_commands_are_those_that_the_parts_add() -> None:
    added: set[str] = set()

    class Parser:
        def add_argument(self, *arguments: object, **options: object) -> None: ...
        def set_defaults(self, **options: object) -> None: ...
        def add_mutually_exclusive_group(self, **options: object) -> Parser:
            return self

    def add(name: str, help: str, run: object) -> Parser:
        added.add(name)
        return Parser()

    for functions in parts.rows("commands"):
        for function in functions:
            function(add)
    assert added == parts.command_names()
    assert set(window_parts.command_reasons()) == set(window_parts.merged("programs"))


def test_an_unknown_table_is_an_error() -> None:
    with pytest.raises(LookupError, match="There is no table “panel”"):
        window_parts.rows("panel")


def test_a_part_that_is_switched_off_contributes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(parts.ENVIRONMENT, "teaching")
    assert parts.names() == ("teaching",)
    assert parts.rows("formats") == [] and "lengths" in parts.merged("jobs")
    monkeypatch.setenv(parts.ENVIRONMENT, "")
    assert parts.names() == () and parts.rows("jobs") == [] and parts.problems() == []


def test_a_part_that_fails_is_one_sentence_and_the_other_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    broken, sound = ModuleType("broken_part"), ModuleType("sound_part")

    def jobs() -> dict[str, object]:
        raise RuntimeError("no such luck")

    broken.jobs = jobs  # type: ignore[attr-defined]
    sound.jobs = lambda: {"a": 1}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "broken_part", broken)
    monkeypatch.setitem(sys.modules, "sound_part", sound)
    monkeypatch.delenv(parts.ENVIRONMENT, raising=False)
    listed = {"one": "broken_part", "two": "sound_part", "three": "part_that_is_not_there"}
    assert parts.rows_in("jobs", listed, ("jobs",)) == [{"a": 1}]
    assert parts.problems(listed, ("jobs",)) == [
        "The part “one” is missing: RuntimeError: no such luck.",
        "The part “three” is missing: ModuleNotFoundError: No module named 'part_that_is_not_there'.",
    ]
