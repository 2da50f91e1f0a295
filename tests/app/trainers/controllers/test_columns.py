"""Tables whose columns are not recognised, opened by a dialog in which the user says what they mean."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QDialogButtonBox

from app.messages.message import MessageLine
from app.trainers.columns_dialog import MEANINGS, ColumnsDialog
from app.trainers.recorded_run import RecordedRun
from app.trainers.trainers import Trainers
from grpo_core.foreign.readers import Readers
from grpo_core.trainers.columns import columns, key_of
from grpo_core.trainers.concepts import CONCEPTS
from grpo_core.trainers.importers.row_columns import MEANINGS as OF_ROWS
from tests.app.conftest import Driver

pytestmark = pytest.mark.one_window
ROWS = [{"it": s, "sagt": f"Antwort {g}", "note": float(g), "question": "1+1"} for s in (1, 2) for g in range(4)]
LOG = [{"it": s, "punkte": s / 10, "kl": 0.01} for s in range(1, 41)]


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    if path.suffix == ".jsonl":
        path.write_text("\n".join(map(json.dumps, rows)))
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows))
    elif path.suffix == ".csv":
        path.write_text("\n".join([",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]))
    else:
        parquet, arrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
        parquet.write_table(arrow.Table.from_pylist(rows), path)
    return path


def refused(driver: Driver, path: Path) -> MessageLine:
    """Open a table and return the message that refuses it."""
    driver.program.runs.open_path(path)
    messages = driver.program.window.messages
    driver.qtbot.waitUntil(lambda: any(str(path) in line.message.id for line in messages.lines))
    return next(line for line in messages.lines if str(path) in line.message.id)


def asked(driver: Driver, line: MessageLine) -> ColumnsDialog:
    """Press the button of a refusal and return its dialog."""
    assert [button.text() for button in line.buttons] == ["Say what its columns mean…"]
    line.buttons[0].click()
    return driver.program.window.findChildren(ColumnsDialog)[-1]


def choose(dialog: ColumnsDialog, chosen: dict[str, str]) -> None:
    for name, meaning in chosen.items():
        dialog.boxes[name].setCurrentIndex(MEANINGS.index(meaning))


def shown(driver: Driver, head: int) -> RecordedRun:
    """Wait until a recorded run is shown with all its series, and return it."""

    def is_shown() -> bool:
        run = driver.program.workspace.run
        return isinstance(run, RecordedRun) and run.computed == run.head == head

    driver.qtbot.waitUntil(is_shown)
    run = driver.program.workspace.run
    assert isinstance(run, RecordedRun)
    return run


@pytest.fixture
def reader_process(driver: Driver) -> Iterator[None]:
    """Let this window read in a process of its own, as the program does."""
    workspace, before = driver.program.workspace, driver.program.workspace.readers
    workspace.readers = Readers(own_process=True)
    yield
    workspace.readers.close()
    workspace.readers = before


@pytest.mark.usefixtures("reader_process")
def test_a_table_opens_by_what_the_user_says_and_the_next_one_alike_at_once(driver: Driver, tmp_path: Path) -> None:
    path = written(tmp_path / "mine.jsonl", ROWS)
    line = refused(driver, path)
    assert "is not a recorded run" in line.text
    dialog = asked(driver, line)
    assert dialog.boxes["question"].currentData() == "prompt", "recognised by its name"
    assert dialog.boxes["sagt"].currentData() == ""
    assert "Antwort 0 · Antwort 1 · Antwort 2" in dialog.boxes["sagt"].accessibleName()
    choose(dialog, {"it": "step", "sagt": "completion", "note": "reward"})
    QTest.keyClick(dialog, Qt.Key.Key_Return)
    run = shown(driver, 2)
    assert run.source.columns == "it=step,sagt=completion,note=reward,question=prompt"
    assert run.series["reward_mean"].values.tolist() == [1.5, 1.5]
    assert run.source.completions(1).rewards.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert not any(str(path) in line.message.id for line in driver.program.window.messages.lines)
    driver.program.runs.open_path(written(tmp_path / "again.jsonl", [*ROWS, *({**row, "it": 3} for row in ROWS[:4])]))
    assert shown(driver, 3).title == "again"


@pytest.mark.parametrize("ending", ["json", "jsonl", "csv", "parquet"])
def test_a_log_in_every_form_opens_by_what_the_user_says(ending: str, driver: Driver, tmp_path: Path) -> None:
    path = written(tmp_path / f"log.{ending}", LOG)
    dialog = asked(driver, refused(driver, path))
    assert list(dialog.boxes) == ["it", "punkte", "kl"] and dialog.boxes["kl"].currentData() == "kl"
    choose(dialog, {"it": "step", "punkte": "reward"})
    dialog.accept()
    run = shown(driver, 40)
    np.testing.assert_allclose(run.series["reward_mean"].values, [row["punkte"] for row in LOG], rtol=1e-12)
    note = next(line for line in driver.program.window.messages.lines if line.message.id == "recorded notes")
    assert "it=step,punkte=reward,kl=kl" in note.text and len(driver.program.preferences.current.tables) == 1
    assert [button.text() for button in note.buttons] == ["Forget what its columns mean"]
    note.buttons[0].click()
    assert not driver.program.preferences.current.tables


def test_another_choice_for_the_same_file_shows_no_numbers_of_the_first(driver: Driver, tmp_path: Path) -> None:
    path = written(tmp_path / "rows.jsonl", [{**row, "sagt": "2"} for row in LOG])
    trainers = next(part for part in driver.program.parts if isinstance(part, Trainers))
    for name in ("punkte", "kl"):
        trainers.recorded_runs.open(path, lambda _: None, f"it=step,sagt=completion,{name}=reward")
        run = shown(driver, 40)
        driver.qtbot.waitUntil(lambda: not trainers.recorded_runs.busy)
        np.testing.assert_allclose(run.series["reward_mean"].values, [row[name] for row in LOG], rtol=1e-12)
        driver.program.run_manager.close_run(run)


def test_a_wrong_choice_is_refused_with_its_sentence_and_not_remembered(driver: Driver, tmp_path: Path) -> None:
    path = written(tmp_path / "mine.jsonl", ROWS)
    dialog = asked(driver, refused(driver, path))
    choose(dialog, {"note": "group"})
    dialog.accept()
    messages = driver.program.window.messages
    driver.qtbot.waitUntil(lambda: any("holds no rows of completions" in line.text for line in messages.lines))
    assert driver.program.preferences.current.tables == ()
    dialog = asked(driver, refused(driver, path))
    dialog.reject()
    assert any(str(path) in line.message.id for line in messages.lines), "the message stays"


def test_a_remembered_choice_that_no_longer_fits_is_asked_for_again(driver: Driver, tmp_path: Path) -> None:
    path = written(tmp_path / "mine.jsonl", ROWS)
    (found,) = columns(str(path), poll=lambda: None)
    preferences = driver.program.preferences
    preferences.put(preferences.current.with_columns(key_of(found), "sagt=no meaning of this version"))
    line = refused(driver, path)
    assert "is not a column and its meaning" in line.text
    choose(dialog := asked(driver, line), {"sagt": "completion", "note": "reward"})
    dialog.accept()
    assert shown(driver, 1).source.columns == preferences.current.columns_of(key_of(found))


def test_a_meaning_belongs_to_one_column(driver: Driver, tmp_path: Path) -> None:
    path = written(tmp_path / "mine.jsonl", ROWS)
    (found,) = columns(str(path), poll=lambda: None)
    dialog = ColumnsDialog(path.name, found, driver.program.window)
    question, other = dialog.boxes["question"], dialog.boxes["sagt"]
    other.setCurrentIndex(MEANINGS.index("prompt"))
    assert question.currentData() == "", "its meaning was taken"
    other.setCurrentIndex(0)
    assert question.currentData() == "prompt", "it would be read as the prompt again"
    for name in ("sagt", "note"):
        dialog.boxes[name].setCurrentIndex(MEANINGS.index("part"))
    assert [dialog.boxes[name].currentData() for name in ("sagt", "note")] == ["part", "part"]
    dialog.close()


def test_the_dialog_is_used_with_the_keyboard_alone(driver: Driver, tmp_path: Path) -> None:
    (found,) = columns(str(written(tmp_path / "mine.jsonl", ROWS)), poll=lambda: None)
    dialog = ColumnsDialog("mine.jsonl", found, driver.program.window)
    chosen: list[str] = []
    dialog.chosen.connect(chosen.append)
    dialog.show()
    dialog.activateWindow()
    order = []
    for _ in dialog.boxes:
        dialog.focusNextChild()
        focused = dialog.focusWidget()
        assert isinstance(focused, QComboBox)
        order.append(focused)
    assert {*order} == {*dialog.boxes.values()}
    QTest.keyClicks(dialog.boxes["note"], "rew")
    assert dialog.boxes["note"].currentData() == "reward"
    QTest.keyClick(dialog.boxes["note"], Qt.Key.Key_Return)
    assert chosen == ["note=reward"], "without a completion, it is a log, which has no prompt"


def test_every_meaning_is_offered_with_a_title() -> None:
    assert {*MEANINGS} == {"", *OF_ROWS, *CONCEPTS}


def test_names_that_the_option_cannot_say_cannot_be_chosen(driver: Driver, tmp_path: Path) -> None:
    rows = [{"a,b": 1, " c": 2, "d=e": 3, "f": {"inner": 1}} for _ in range(2)]
    (found,) = columns(str(written(tmp_path / "odd.json", rows)), poll=lambda: None)
    dialog = ColumnsDialog("odd.json", found, driver.program.window)
    assert {name: box.isEnabled() for name, box in dialog.boxes.items()} == {
        "a,b": False, " c": False, "d=e": True, "f/inner": True,
    }  # fmt: skip
    assert not dialog.buttons.button(QDialogButtonBox.StandardButton.Ok).isEnabled(), "nothing is chosen"
    dialog.close()


@pytest.mark.parametrize("text", ["{", "[1, 2]", '{"a": 1}', "", '"x"', "[" * 5000])
def test_a_file_without_rows_has_no_columns(text: str, tmp_path: Path) -> None:
    (tmp_path / "odd.json").write_text(text)
    assert [*columns(str(tmp_path / "odd.json"), poll=lambda: None)] == [[]]
    assert [*columns(str(tmp_path), poll=lambda: None)] == [[]]
    assert key_of([]) == key_of([])
