"""Parsers of texts from other people: every fault is one error with its line, and time is bounded by the size."""

from __future__ import annotations

import time

import pytest

from grpo_core.parsing import ParseError, csv_lines, csv_rows, from_json, from_toml


@pytest.mark.parametrize("content", ["[" * 100_000, "1" * 5_000, "{", b"\xff", "", "[1,]", '{"a": 1e}'])
def test_json_that_cannot_be_parsed_is_one_error(content: str | bytes) -> None:
    with pytest.raises(ParseError):
        from_json(content)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a = 1\nb = [", 2),
        ("x = 1\n" + ".".join("a" * 60_000) + " = 1", 2),
        ("x = " + "[" * 30_000, 1),
        ("x = 1" + "0" * 5_000, 1),
        ("a = 1\na = 2", 2),
    ],
)
def test_toml_that_cannot_be_parsed_is_one_error_at_once(text: str, line: int) -> None:
    begun = time.process_time()
    with pytest.raises(ParseError) as error:
        from_toml(text)
    assert error.value.line == line
    assert time.process_time() - begun < 1


def test_csv_that_cannot_be_parsed_is_one_error() -> None:
    names, rows = csv_rows(["a,b", "1,2", '"3', "4"])
    with pytest.raises(ParseError) as error:
        list(rows)
    assert names == ["a", "b"] and error.value.line == 4
    with pytest.raises(ParseError):
        csv_lines(["x" * 200_000])
