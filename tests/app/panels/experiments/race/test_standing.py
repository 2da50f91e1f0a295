"""The table of a race: the numbers of the runs, sorted and copied."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QApplication,
)
from pytestqt.qtbot import QtBot

from app.experiments.race.looks import look
from app.experiments.race.results import COLUMNS
from app.experiments.race.standing import RaceStanding
from app.theme.tokens import DARK
from grpo_core.experiments.ensemble import band
from tests.app.panels.experiments.race.hands import raced


def test_the_standing_shows_the_numbers_of_the_runs() -> None:
    results = raced(fairness="samples")
    rows = {str(row[0]): dict(zip([c.key for c in COLUMNS], row, strict=True)) for row in results.rows()}
    for name, runs in results.lanes.items():
        middle, low, high = (limit[-1] for limit in band(runs.measures["reward"]))
        assert (rows[name]["reward"], rows[name]["low"], rows[name]["high"]) == (middle, low, high)
        assert rows[name]["stuck"] == runs.stuck
        assert rows[name]["samples"] == 12 * 8
    assert (rows["REINFORCE"]["group"], rows["REINFORCE"]["updates"]) == (1, 96)


def test_the_standing_sorts_and_copies_every_digit(qtbot: QtBot) -> None:
    standing, results = RaceStanding(), raced()
    qtbot.addWidget(standing)
    standing.set_rows(results.rows())
    standing.sortByColumn(1, Qt.SortOrder.DescendingOrder)
    assert str(standing.table.value(0, 0)) == results.ranked()[0][0]
    standing.copy()
    lines = QApplication.clipboard().text().splitlines()
    assert len(lines) == 7 and repr(results.ranked()[0][1]) in lines[1]
    standing.set_look(DARK, 1.0)
    ink = standing.table.data(standing.table.index(0, 0), Qt.ItemDataRole.ForegroundRole)
    assert ink == DARK.ink(look(results.ranked()[0][0]).meaning)


def test_the_best_algorithm_is_on_top_at_first(qtbot: QtBot) -> None:
    standing, results = RaceStanding(), raced()
    qtbot.addWidget(standing)
    standing.set_rows(results.rows())
    shown = [str(standing.table.value(place, 0)) for place in range(standing.table.rowCount())]
    assert shown == [name for name, _ in results.ranked()]
