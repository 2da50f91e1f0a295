"""The registry of panels: every row creates, on demand, a panel with its name where layouts can place it."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from app import panel_registry
from app.panel_registry import HOME, PANELS, lesson_panels
from app.widgets.panel import Panel, in_window
from app.widgets.panel_spec import Area, PanelSpec
from tests.app.conftest import Driver

ROOT = Path(__file__).parents[3]
DOCKED = [spec for spec in PANELS if spec.area is not Area.TOP]


def test_no_two_panels_share_an_id_or_a_title() -> None:
    assert len({spec.id for spec in PANELS}) == len(PANELS)
    assert len({spec.title for spec in PANELS}) == len(PANELS)


@pytest.mark.parametrize("spec", PANELS, ids=lambda spec: spec.id)
def test_a_row_says_in_a_sentence_what_its_panel_shows(spec: PanelSpec[Panel]) -> None:
    assert spec.help[:1].isupper() and spec.help.endswith(".")
    assert spec.kind in ("", "bandit", "language", "recorded")
    assert all(place.area is not Area.TOP for place in spec.shown.values())


def test_every_panel_can_be_shown_and_bears_the_name_of_its_row(driver: Driver) -> None:
    rows = {name: row for name, row in vars(panel_registry).items() if isinstance(row, PanelSpec)}
    declared = {rows[name].id: kind for name, kind in panel_registry.__annotations__.items() if name in rows}
    driver.run(2)
    for spec in DOCKED:
        panel = driver.program.window.show_panel(spec)
        driver.qtbot.waitUntil(partial(in_window, panel))
        driver.settle()
        assert (panel.id, panel.objectName(), panel.title) == (spec.id, spec.id, spec.title)
        assert panel.accessibleName() == spec.title
        assert driver.program.window.docks[spec.id].objectName() == f"dock.{spec.id}"
        assert declared.pop(spec.id, own := f"PanelSpec[{type(panel).__name__}]") == own
    assert not declared, "a row with a declared class has a dock"


def test_panels_behind_tabs_are_made_when_they_are_first_seen(driver: Driver) -> None:
    made = driver.program.window.panels
    assert {spec.id for spec in PANELS if spec.eager} <= made.keys()
    late = [spec for spec in DOCKED if not spec.eager and spec.id not in made]
    assert late
    for spec in late:
        assert driver.program.window.panels.of(spec) is made[spec.id]


def test_the_first_screen_creates_no_panel_that_it_hides(driver: Driver) -> None:
    made = driver.program.window.panels
    before = {*made}
    driver.program.doors.show_home()
    assert {*made} - before == {HOME.id}


def test_panels_beside_lessons_have_a_dock() -> None:
    assert set(lesson_panels()) <= {spec.id for spec in DOCKED}


def test_the_registry_imports_no_panel_that_is_made_when_it_is_first_shown(driver: Driver) -> None:
    late = {type(spec.make(driver.program.workspace)).__module__ for spec in PANELS if not spec.eager}
    assert len(late) > 5
    code = "import sys, app.panel_registry\nprint(*sorted(m for m in sys.modules if m.startswith('app.')))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=200, check=True
    )
    assert not late & {*done.stdout.split()}
