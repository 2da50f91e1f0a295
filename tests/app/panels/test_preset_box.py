"""The choice of an algorithm: every preset once, under the heading of what it changes."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.panels.controls.panel import PresetBox
from app.panels.controls.rows import MARK, setting_row
from app.widgets.calm import CHANGED
from grpo_core.config import PRESETS, Optimizer
from grpo_core.config.presets import GROUPS
from tests.app.painted import painted_words


def test_every_preset_stands_once_below_the_heading_of_its_group(qtbot: QtBot) -> None:
    box = PresetBox()
    qtbot.addWidget(box)
    heading, found = "", {}
    for place in range(box.count()):
        if box.itemData(place) is None:
            heading = box.itemText(place)
        else:
            found[box.itemData(place)] = heading
    assert found == {name: GROUPS[preset.group] for name, preset in PRESETS.items()}
    assert {preset.group for preset in PRESETS.values()} == set(GROUPS), "no heading stands over nothing"


def test_keys_go_past_headings_and_a_heading_is_never_chosen(qtbot: QtBot) -> None:
    box = PresetBox()
    qtbot.addWidget(box)
    box.show()
    box.setFocus()
    chosen: list[str] = []
    box.chosen.connect(chosen.append)
    box.setCurrentIndex(box.findData(next(iter(PRESETS))))
    for _ in range(len(PRESETS) + len(GROUPS)):
        QTest.keyClick(box, Qt.Key.Key_Down)
    assert len(chosen) == len(PRESETS) - 1 and box.currentData() == chosen[-1]
    for place in range(box.count()):
        if box.itemData(place) is None:
            box.activated.emit(place)
    assert len(chosen) == len(PRESETS) - 1


def test_a_preset_from_which_the_settings_differ_has_a_star(qtbot: QtBot) -> None:
    box = PresetBox()
    qtbot.addWidget(box)
    box.show_named("DAPO", changed=True)
    assert box.currentText() == f"DAPO{CHANGED}" and box.currentData() == "DAPO"
    box.show_named("GSPO", changed=False)
    assert [box.itemText(place) for place in range(box.count()) if CHANGED in box.itemText(place)] == []


def test_marks_are_painted_although_the_name_before_them_does_not_fit(qtbot: QtBot) -> None:
    box, row = PresetBox(), setting_row("optimizer", Optimizer, "max_grad_norm")
    box.show_named("GRPO (DeepSeekMath)", changed=True)
    row.mark("This update ran with 2.")
    for widget, mark in ((box, CHANGED), (row, MARK)):
        qtbot.addWidget(widget)
        for width, end in ((400, mark), (140, "…" + mark)):
            widget.resize(width, widget.sizeHint().height())
            named = [word.text for word in painted_words(widget) if mark in word.text]
            assert len(named) == 1 and named[0].endswith(end) and ("…" in named[0]) == ("…" in end)
