"""Parsers of texts from other people: every fault is one error with its line, and time is bounded by the size.

No cell of a table that the program writes is executed by a spreadsheet.
"""

from __future__ import annotations

import csv
import io
import time

import pytest

from grpo_core.csv_file import CsvWriter, defused
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


# -- tables that the program writes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "+1", "-2+3", " =1+1", "\t=1", "\r@x", "=HYPERLINK(A1)", "-a"]
)
def test_a_text_that_a_spreadsheet_would_run_gets_an_apostrophe(text: str) -> None:
    assert defused(text) == f"'{text}"


@pytest.mark.parametrize("value", ["=", "+", "-", "@", "", " ", "-1.5", "-inf", "1e-7", "word", "a=b", -1.5, 3, None])
def test_numbers_signs_alone_and_words_stay_as_they_are(value: object) -> None:
    assert defused(value) is value


def test_a_table_is_read_back_with_its_numbers_and_without_formulas() -> None:
    file = io.StringIO()
    writer = CsvWriter(file)
    writer.writerow(["name", "value"])
    writer.writerows([["=cmd", -0.5], ["-", "plain, with a comma"]])
    assert list(csv.reader(io.StringIO(file.getvalue()))) == [
        ["name", "value"],
        ["'=cmd", "-0.5"],
        ["-", "plain, with a comma"],
    ]
