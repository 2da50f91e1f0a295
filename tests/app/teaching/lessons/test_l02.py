"""Lesson 2: the memory bill."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QCheckBox
from pytestqt.qtbot import QtBot

from app.teaching.lessons.interactives.bill_picture import BillPicture, size_of
from app.teaching.lessons.interactives.memory_bill import MemoryBill
from grpo_core.config import language_settings
from grpo_core.memory import GIB, STATE_BYTES, Block, Training, ledger, total
from grpo_core.teaching.lessons.experiments.bill import FOUR, Bill
from tests.app.teaching.lessons.hands import Pupil
from tests.app.teaching.lessons.held import lesson_of

pytestmark = pytest.mark.one_window

Key = Qt.Key


def test_at_equal_sizes_half_stays_whatever_is_trained() -> None:
    shares = (0.001, 0.3, 1.0)
    for size, optimizer, width, trained in product((1e8, 7e9, 7e11), STATE_BYTES, (0.5, 2.0, 4.0), shares):
        training = Training(parameters=size, optimizer=optimizer, weight_bytes=width, trained_share=trained)
        assert Bill(training).answers()["share_of_four"]() == pytest.approx(0.5), training
        small = Bill(replace(training, helper_share=0.1)).answers()["share_of_four"]()
        assert 0.9 < small < 0.92


def test_sixteen_bytes_a_trained_parameter_and_the_work_of_a_group() -> None:
    training = Training(parameters=1e9, generated=0)
    known = [block for block in ledger(training) if not block.estimate and block.model == "policy"]
    assert total(known) == 16e9
    for group in (1, 2, 8, 64):
        answers = Bill(Training(parameters=1e9, generated=group)).answers()
        assert answers["work_over_ppo"]() == pytest.approx(group / 2)
    four = Bill(Training(parameters=1e9, generated=1, **FOUR)).answers()
    assert four["work_over_ppo"]() == 1.0
    assert four["share_with_estimates"]() == 1.0


def test_models_are_switched_off_and_blocks_opened_by_keyboard(pupil: Pupil) -> None:
    bill = pupil.opened("memory_bill", MemoryBill, step=3)
    before = total(bill.bill.blocks)
    box = bill.rows["reference"].findChild(QCheckBox)
    assert box is not None
    assert box.isVisible()
    box.setFocus(Qt.FocusReason.TabFocusReason)
    pupil.press(Key.Key_Space)
    assert not bill.bill.training.reference
    assert before - total(bill.bill.blocks) == pytest.approx(14e9)
    assert "reference" not in {block.model for block in bill.picture.blocks}
    bill.picture.setFocus(Qt.FocusReason.TabFocusReason)
    pupil.press(Key.Key_Down)
    assert bill.picture.block == bill.picture.blocks[1]
    assert "gradients: 7B trained × 2 bytes = 13.0 GiB" in bill.formula.text()
    pupil.lesson_player.reset()
    pupil.wait()
    assert bill.bill.training.reference


def test_the_size_is_dragged_over_four_powers_of_ten(pupil: Pupil) -> None:
    bill = pupil.opened("memory_bill", MemoryBill)
    slider = bill.rows["parameters"].slider  # type: ignore[attr-defined]
    assert slider.isVisible()
    for end, size in ((slider.minimum(), 1e8), (slider.maximum(), 7e11)):
        slider.setValue(end)
        pupil.wait()
        assert bill.bill.training.parameters == pytest.approx(size)
        assert bill.answer("gib") == pytest.approx(total(bill.bill.blocks) / GIB)
    field = bill.rows["parameters"].field  # type: ignore[attr-defined]
    field.setFocus()
    field.setText("nonsense")
    QTest.keyClick(field, Key.Key_Return)
    assert bill.rows["parameters"].error.text()
    assert bill.bill.training.parameters == pytest.approx(7e11), "a word is refused, the bill stays"


def test_a_ledger_of_real_tensors_is_drawn_as_well(qtbot: QtBot) -> None:
    picture = BillPicture()
    qtbot.addWidget(picture)
    picture.resize(500, 200)
    picture.show_blocks([])
    picture.grab()
    picture.choose(3)
    real = [
        Block(model="policy", part="weights", bytes=412_160.0, formula="103,040 numbers of float32 in 28 tensors"),
        Block(model="teacher", part="weights", bytes=0.0, formula="none"),
    ]
    picture.show_blocks(real)
    picture.grab()
    QTest.mouseClick(picture, Qt.MouseButton.LeftButton, pos=QPoint(150, 60))
    assert picture.block == real[0]
    assert size_of(real) == "0.39 MiB"
    assert "teacher, weights" in picture.accessibleDescription()


def test_the_ledger_of_the_real_model_is_five_copies_and_all_that_its_process_holds(pupil: Pupil) -> None:
    pytest.importorskip("torch")
    pupil.open("memory_bill")
    last = len(lesson_of("memory_bill").steps)
    pupil.walk_to(last)
    placed = pupil.predict(1)
    assert placed.right
    bill = pupil.shown(MemoryBill)
    assert bill.real is not None
    (weights,) = {block.bytes for block in bill.real.blocks if block.part == "weights"}
    assert total(bill.real.blocks) == pytest.approx(5 * weights, rel=1e-3), "AdamW also keeps a few step counts"
    between = sum(block.bytes for block in bill.real.blocks if block.part != "gradients")
    critic = 4 * (language_settings().model.width + 1)
    assert bill.real.held is not None
    assert bill.real.held - between == critic, "nothing else is there: two counts that know nothing of one another"
    assert "28 tensors" in bill.formula.text()
    assert "1.61 MiB" in bill.total.text()


@pytest.mark.long
def test_without_torch_the_real_ledger_counts_the_arrays_of_numpy(without_torch: Path, pupil: Pupil) -> None:
    pupil.open("memory_bill")
    pupil.walk_to(len(lesson_of("memory_bill").steps))
    assert pupil.predict(1).right
    bill = pupil.shown(MemoryBill)
    assert bill.real is not None and (bill.real.held, bill.real.allocated) == (None, None)
    (weights,) = {block.bytes for block in bill.real.blocks if block.part == "weights"}
    assert total(bill.real.blocks) == 5 * weights
    assert "28 tensors" in bill.formula.text()
    assert "2.01 MiB" in bill.total.text()
