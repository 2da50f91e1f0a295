"""Progress in lessons survives a restart, and a damaged file is set aside."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path

import pytest

from app.teaching.lessons.progress import COLUMNS, MOST, LessonProgress, PredictionEntry, Reached


def entry(**changes: object) -> PredictionEntry:
    usual = {
        "when": "2026-01-02T03:04:05",
        "lesson": "toy",
        "step": 3,
        "ask": "Which?",
        "kind": "number",
        "guess": "0.5",
        "value": 0.25,
        "right": False,
        "skipped": False,
    }
    return PredictionEntry(**{**usual, **changes})  # type: ignore[arg-type]


def test_steps_and_predictions_are_there_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "data" / "lessons.json"
    progress = LessonProgress(path)
    assert progress.reach("toy", 3, last=False) is None
    assert progress.reach("toy", 2, last=False) is None
    assert progress.add(entry()) is None
    assert progress.add(entry(right=True)) is None
    assert progress.add(entry(guess="", skipped=True, value=math.nan)) is None
    again = LessonProgress(path)
    assert again.reached == {"toy": Reached(3, False)}
    assert again.score("toy") == (1, 2)  # what was skipped is neither right nor wrong
    assert again.history[:2] == progress.history[:2]
    assert again.history[2].skipped
    assert math.isnan(again.history[2].value)
    assert again.reach("toy", 1, last=True) is None
    assert LessonProgress(path).reached == {"toy": Reached(3, True)}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"nothing",
        b"[]",
        b'{"reached": {"toy": [1]}, "history": []}',
        b'{"reached": {}, "history": [{"when": 3}]}',
        b"[" * 100_000,
        b"\xff\xfe",
        b'{"reached": {"toy": ["1", true]}, "history": []}',
    ],
)
def test_a_damaged_file_is_kept_aside_and_said(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "lessons.json"
    path.write_bytes(content)
    progress = LessonProgress(path)
    assert "damaged" in progress.problem
    assert (progress.reached, progress.history) == ({}, [])
    assert path.with_suffix(".bad.json").read_bytes() == content
    assert progress.reach("toy", 1, last=False) is None
    assert LessonProgress(path).problem == ""


def test_a_folder_that_cannot_be_written_is_said_and_nothing_raised(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    progress = LessonProgress(blocked / "lessons.json")
    assert "could not be" in (progress.problem or progress.reach("toy", 1, last=False) or "")


def test_the_history_is_a_table_that_a_spreadsheet_reads_and_does_not_run(tmp_path: Path) -> None:
    progress = LessonProgress(tmp_path / "lessons.json")
    progress.add(entry(ask='=SUM(A1), "quoted"', guess="same", value=1 / 3, right=True))
    progress.add(entry(value=math.nan, skipped=True))
    target = tmp_path / "out.csv"
    beside = tmp_path / "beside.txt"
    beside.touch()
    assert progress.export(target) is None
    assert target.stat().st_mode == beside.stat().st_mode, "it is for others to read"
    rows = list(csv.reader(io.StringIO(target.read_text("utf-8-sig"))))
    assert tuple(rows[0]) == COLUMNS
    first = dict(zip(COLUMNS, rows[1], strict=True))
    assert first["ask"] == '\'=SUM(A1), "quoted"'
    assert float(first["value"]) == 1 / 3
    assert (first["right"], first["skipped"]) == ("yes", "no")
    assert dict(zip(COLUMNS, rows[2], strict=True))["value"] == ""
    assert "could not be saved" in str(progress.export(tmp_path / "lessons.json" / "x.csv"))


def test_the_oldest_predictions_go_first(tmp_path: Path) -> None:
    path = tmp_path / "lessons.json"
    progress = LessonProgress(path)
    progress.history = [entry()] * MOST
    progress.add(entry(step=9))
    assert len(progress.history) == MOST
    assert json.loads(path.read_bytes())["history"][-1]["step"] == 9
