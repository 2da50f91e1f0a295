"""Every digit, word and mark in a painted frame belongs to the same update, however fast the run is."""

from __future__ import annotations

import re
import statistics
import time
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
from PySide6.QtCore import QObject, Slot

from app.plotting.numbers import shown, summed
from app.widgets.panel import in_window
from grpo_core.config import language_settings
from grpo_core.explain import Numbers
from grpo_core.metrics import METRICS
from tests.app.conftest import Driver

SPEEDS = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0, None)
NUMBER = re.compile(r"Update ([\d,]+)")
pytestmark = pytest.mark.one_window

SUMMED = "reward"


def number_in(text: str) -> int | None:
    """Return the update named in a sentence, or None if it names none."""
    found = NUMBER.search(text)
    return None if found is None else int(found.group(1).replace(",", ""))


@dataclass
class Witness(QObject):
    """Reads the content of the window after each painted frame in which the update has changed.

    Attributes:
        frames: number of these frames.
        disagreements: content that did not belong to the timeline's update, with that update.
    """

    driver: Driver
    frames: int = 0
    disagreements: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self._last: object = None
        self.driver.program.workspace.drawn.connect(self.read)

    @Slot()
    def read(self) -> None:
        workspace, panels = self.driver.program.workspace, self.driver.program.window.panels
        timeline: Any = panels["timeline"]
        step = number_in(timeline.place.text())
        if step is None or step == self._last or not workspace.run:
            return
        self._last = step
        self.frames += 1
        drawn = {name: panel.place_drawn for name, panel in panels.items() if in_window(panel)}
        if len({*drawn.values()} - {None}) > 1:
            self._note(step, f"panels drew different places: {drawn}")
        self._compare(step, {name: panel for name, panel in panels.items() if in_window(panel)})

    def _note(self, step: int, text: str) -> None:
        self.disagreements.append(f"update {step}: {text}")

    def _compare(self, step: int, seen: dict[str, Any]) -> None:
        """Compare the text itself with the record of the update shown by the timeline."""
        run = self.driver.program.workspace.run
        record = None if run is None else run.step(step)
        if run is None or record is None:
            return
        if "training_history" in seen:
            for chart in seen["training_history"].charts:
                if chart.cursor_x != step and in_window(chart):
                    self._note(step, f"the history's cursor stands at {chart.cursor_x}")
        if "policy_bars" in seen:
            named = number_in(seen["policy_bars"].plot.picture.sentence)
            if named not in (None, step):
                self._note(step, f"the sentence over the bars says update {named}")
        if "step_detail" in seen and SUMMED in seen["step_detail"].sums.texts:
            text, total = seen["step_detail"].sums.texts[SUMMED], shown(float(record.rewards.sum()), 3)
            if text != total:
                self._note(step, f"the table's rewards sum to {text}, those of the record to {total}")
        if "metrics" in seen:
            for card in seen["metrics"].cards:
                self._compare_card(step, card, run)

    def _reveals_later(self, record: Any) -> bool:
        """Return whether the painted frame is of a film before the end of the update. It may have ended since."""
        place: Any = self.driver.program.window.panels["metrics"].place_drawn
        return place is not None and place[-1].next_stage(record.passes) is not None

    def _compare_card(self, step: int, card: Any, run: Any) -> None:
        name = card.accessibleName()
        if card.name == "updates":
            expected = f"{run.head:,}"
        elif "from the previous update" in name or (name.endswith(" —") and self._reveals_later(run.step(step))):
            return
        else:
            value, metric = float(run.series[card.name].values[step - 1]), METRICS[card.name]
            expected = f"{100 * value:.3g}%" if metric.share and value == value else summed(value, metric.decimals)
            if name.endswith(" ≈ 0"):  # the sum of terms that cancel, up to their rounding
                expected = summed(value, metric.decimals, Numbers(run.step(step)).rounding(card.name))
        if not name.endswith(f" {expected}"):
            self._note(step, f"a card says {name!r}, the record {expected}")


def watched(driver: Driver, speed: float | None, frames: int, seconds: float) -> Witness:
    """Run at this speed until the displayed update has changed in ``frames`` frames, or for ``seconds``."""
    player, witness = driver.program.player, Witness(driver)
    player.set_length(None)
    player.set_speed(speed)
    player.run()
    end = time.monotonic() + seconds
    driver.qtbot.waitUntil(
        lambda: witness.frames >= frames or time.monotonic() > end, timeout=round(1000 * seconds) + 60_000
    )
    player.pause()
    driver.rest()
    witness.read()
    return witness


@pytest.mark.parametrize("speed", [10.0, None])
def test_all_panels_show_one_update_while_a_run_goes_on(driver: Driver, speed: float | None) -> None:
    witness = watched(driver, speed, frames=12, seconds=30)
    assert witness.frames >= 12
    assert not witness.disagreements, witness.disagreements[:5]


def test_numbers_change_ten_times_a_second_at_most(driver: Driver) -> None:
    player, workspace = driver.program.player, driver.program.workspace
    heads: list[tuple[float, int]] = []
    workspace.drawn.connect(lambda: heads.append((time.monotonic(), workspace.view.head)))
    player.set_speed(None)
    player.set_length(None)
    player.run()
    driver.qtbot.waitUntil(lambda: len({head for _, head in heads}) >= 6)
    player.pause()
    changes = [now for (_, before), (now, head) in pairwise(heads) if head != before]
    driver.rest()
    assert statistics.median(b - a for a, b in pairwise(changes)) >= 0.08


@pytest.mark.long
@pytest.mark.timeout(1500)
@pytest.mark.own_window
@pytest.mark.parametrize("speed", SPEEDS)
def test_no_frame_of_a_long_run_disagrees(driver: Driver, speed: float | None) -> None:
    witness = watched(driver, speed, frames=2000, seconds=60 if speed is None or speed >= 10 else 30)
    assert witness.frames >= 20
    assert not witness.disagreements, witness.disagreements[:5]


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.own_window
@pytest.mark.parametrize("speed", [2.0, None])
def test_no_frame_of_a_language_model_disagrees(driver: Driver, speed: float | None) -> None:
    driver.program.run_manager.new_run(language_settings())
    driver.program.layouts.choose("Language model")
    driver.settle()
    witness = watched(driver, speed, frames=400, seconds=40)
    assert witness.frames >= 20
    assert not witness.disagreements, witness.disagreements[:5]
