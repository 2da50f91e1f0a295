"""No cell of a table that the program writes is executed by a spreadsheet."""

from __future__ import annotations

import csv
import io

import pytest

from grpo_core.csv_file import CsvWriter, defused


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
