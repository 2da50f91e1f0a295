"""The doors: few things on the first screen, each door with its own menus, and the palette that finds everything."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QApplication,
    QComboBox,
    QInputDialog,
    QLineEdit,
    QScrollBar,
    QTabBar,
    QToolBar,
    QWidget,
)

from app.application import Application
from app.commands.palette import OWNER
from app.controllers.doors import DoorsController
from app.examples import EXAMPLES, example
from app.panel_registry import CONTROLS, HOME, PANELS, POLICY_BARS, TOKEN_INSPECTOR
from app.panels.home.panel import HomePanel
from app.widgets.panel import in_window
from app.widgets.panel_spec import Door
from app.window.layouts import arrangement, size_class
from grpo_core.config.fields import DETAILS
from grpo_core.parts import names
from tests.app.commands.test_menus import entries, tops
from tests.app.conftest import Driver
from tools.package.screen import press, screen

pytestmark = pytest.mark.one_window
PRESSED = (QAbstractButton, QComboBox, QAbstractSlider, QLineEdit, QAbstractItemView)
MOST = {"play": 60, "learn": 45, "my_run": 60}
"""Maximum number of commands in the menus, and in the palette before anything is typed, by door."""
DATA = Path(__file__).parents[2] / "data"
TRACE = DATA / "traces" / "grpo"
LOGS = tuple(DATA / "sources" / name for name in ("verl/1.jsonl", "verifiers/traces.jsonl", "logs/verl_console.log"))


@pytest.fixture
def doors(driver: Driver) -> DoorsController:
    return driver.program.doors


def door(doors: DoorsController, id: str) -> Door:
    return next(one for one in doors.all if one.id == id)


def pressed(window: QWidget) -> list[QWidget]:
    """Return what can be clicked or focused: visible and enabled."""
    return [
        one
        for one in window.findChildren(QWidget)
        if in_window(one)
        and one.isEnabled()
        and not isinstance(one, QScrollBar)
        and (isinstance(one, PRESSED) or one.focusPolicy() is not Qt.FocusPolicy.NoFocus)
    ]


def in_menus(driver: Driver) -> set[str]:
    return {action.objectName() for menu in tops(driver.program.window) for action in entries(menu)}


def in_palette(driver: Driver, query: str = "") -> dict[str, str]:
    """Return the commands that the palette shows, with the doors that it names next to them."""
    model = driver.program.palette.model
    model.search(query)
    found = {}
    for row in range(model.rowCount()):
        action = model.action(row)
        assert action is not None
        found[action.objectName()] = model.index(row, 0).data(OWNER)
    return found


def enter(driver: Driver, one: Door) -> None:
    """Go through a door, and pause what begins behind it."""
    driver.program.doors.enter(one)
    driver.program.player.pause()
    driver.rest()


def home(driver: Driver) -> HomePanel:
    driver.program.doors.show_home()
    driver.settle()
    return driver.program.window.panels.of(HOME)


def test_the_first_screen_has_few_things_to_press_and_the_keyboard_is_on_the_first_door(driver: Driver) -> None:
    panel, window = home(driver), driver.program.window
    menus = [menu for menu in tops(window) if not menu.isEmpty()]
    assert len(pressed(window)) + len(menus) <= 30
    assert QApplication.focusWidget() is panel.doors[0]
    assert [one.text() for one in panel.doors] == [one.title for one in driver.program.doors.all]
    assert not any(bar.isVisible() for bar in window.findChildren(QToolBar))
    QTest.keyClick(panel.doors[0], Qt.Key.Key_Right)
    assert QApplication.focusWidget() is panel.doors[1]


@pytest.mark.own_window
def test_the_first_door_has_the_keyboard_of_a_window_that_becomes_active_later(driver: Driver) -> None:
    window, other = driver.program.window, QWidget()
    driver.qtbot.addWidget(other)
    other.show()
    other.activateWindow()
    driver.qtbot.waitUntil(lambda: not window.isActiveWindow())
    panel = home(driver)
    assert window.focusWidget() is panel.doors[0]


@pytest.mark.long
@pytest.mark.skipif(not all(map(shutil.which, ("Xvfb", "openbox", "xdotool"))), reason="needs an X server")
@pytest.mark.parametrize("managed", [False, True])
def test_return_opens_the_first_door_with_and_without_a_window_manager(tmp_path: Path, managed: bool) -> None:
    with screen(managed=managed) as display:
        place = {"DISPLAY": display, "QT_QPA_PLATFORM": "xcb", "GRPO_LAB_HOME": str(tmp_path)}
        with subprocess.Popen([sys.executable, "-m", "app"], env=os.environ | place) as program:
            try:
                until = time.monotonic() + 60
                while not [*tmp_path.rglob("*.grpo")] and time.monotonic() < until:
                    subprocess.run(["xdotool", "sleep", "0.5"], env=os.environ | place, check=True)
                    press(display, "Return")
            finally:
                program.kill()
        assert [*tmp_path.rglob("*.grpo")], "the ten bars are trained"


def test_doors_are_equally_high_also_where_their_sentences_have_more_lines(driver: Driver) -> None:
    panel, needed = home(driver), set()
    for width in (760, 1000, 1366):
        driver.program.window.resize(width, 700)
        driver.settle()
        needed |= {len({one.minimumHeight() for one in panel.doors})}
        assert len({(one.y(), one.height()) for one in panel.doors}) == 1
    assert max(needed) > 1, "otherwise the sentences have equally many lines"


def test_play_shows_its_panels_and_the_bars_move_after_one_key(driver: Driver) -> None:
    panel, window = home(driver), driver.program.window
    QTest.keyClick(panel.doors[0], Qt.Key.Key_Return)
    driver.qtbot.waitUntil(lambda: driver.head > 1)
    shown = [spec.id for spec in PANELS if spec.id in window.docks and in_window(window.docks[spec.id])]
    assert {"policy_bars", "training_history", "step_detail"} <= set(shown) and "home" not in shown
    beside = {dock.windowTitle() for dock in window.tabifiedDockWidgets(window.docks[POLICY_BARS.id])}
    assert {"KL over β", TOKEN_INSPECTOR.title} <= beside
    assert driver.messages == [], "no message over a picture"
    driver.program.player.pause()
    driver.rest()


@pytest.mark.parametrize("id", MOST)
def test_a_door_has_few_commands_and_the_palette_finds_the_others_and_whose_they_are(
    driver: Driver, doors: DoorsController, id: str
) -> None:
    enter(driver, door(doors, id))
    assert all(not menu.isEmpty() for menu in tops(driver.program.window))
    listed = in_menus(driver)
    assert len(listed) <= MOST[id] and in_palette(driver) == dict.fromkeys(in_palette(driver), "")
    assert set(in_palette(driver)) == listed
    everywhere = {action.objectName() for action in driver.program.actions}
    found = {name: owner for action in driver.program.actions
             for name, owner in in_palette(driver, action.text()).items()}  # fmt: skip
    assert everywhere == {name for name in found if not name.startswith("setting.")}
    assert all(bool(found[name]) is not (name in listed) for name in everywhere
               if driver.program.actions[name].command.listed)  # fmt: skip
    for other in doors.all:
        assert other.id == id or other.title in " ".join(found.values())


def test_every_subject_of_a_door_is_that_of_a_command(driver: Driver, doors: DoorsController) -> None:
    subjects = {action.command.subject for action in driver.program.actions}
    subjects |= {row.about.subject for row in driver.program.window.panels.of(CONTROLS).rows}
    for one in doors.all:
        assert one.subjects <= subjects


def test_show_everything_brings_the_rest_and_is_remembered(driver: Driver, doors: DoorsController) -> None:
    doors.enter(door(doors, "learn"))
    few = in_menus(driver)
    driver.program.actions["everything"].trigger()
    listed = {action.objectName() for action in driver.program.actions if action.command.listed}
    assert few < in_menus(driver) == listed
    assert driver.program.preferences.current.everything and driver.program.preferences.current.door == "learn"
    home(driver)
    assert in_menus(driver) == listed
    driver.program.actions["everything"].trigger()
    assert in_menus(driver) < few


def shown_settings(driver: Driver) -> set[tuple[str, ...]]:
    driver.settle()
    return {row.paths for row in driver.program.window.panels.of(CONTROLS).rows if not row.isHidden()}


def test_each_door_shows_its_settings_and_those_that_were_chosen(driver: Driver, doors: DoorsController) -> None:
    controls, editing = driver.program.window.panels.of(CONTROLS), driver.program.workspace.editing
    every, counts = shown_settings(driver), {}
    for one in doors.all:
        enter(driver, one)
        counts[one.id] = len(shown_settings(driver))
    assert len(every) == 39 and counts == {"play": 17, "learn": 17, "my_run": 32}
    enter(driver, door(doors, "play"))
    assert ("learner.staleness",) not in shown_settings(driver)
    for value in (2, 0):  # it stays below the pointer when it is turned back
        editing.edit({"learner.staleness": value}, "Change")
        assert ("learner.staleness",) in shown_settings(driver)
    controls.further.rest.click()
    assert shown_settings(driver) == every and controls.further.rest.isHidden()
    assert driver.program.preferences.current.everything
    driver.program.actions["everything"].trigger()
    assert len(shown_settings(driver)) == 18 and controls.further.rest.text() == "Show 21 more settings"


def test_the_palette_finds_a_setting_says_whose_it_is_and_goes_to_it(driver: Driver, doors: DoorsController) -> None:
    enter(driver, door(doors, "play"))
    editing, palette = driver.program.workspace.editing, driver.program.palette
    assert in_palette(driver, "dual clip")["setting.objective.dual_clip"] == "My run"
    assert in_palette(driver, "faulty")["setting.task.faulty_reward"] == "Show everything"
    assert in_palette(driver, "learning_rate")["setting.optimizer.learning_rate"] == ""
    assert not any(name.startswith(("setting.model", "setting.task.prob")) for name in in_palette(driver, "setting"))
    palette.open_fresh()
    palette.line.setText("dual clip")
    palette.run_chosen()
    driver.settle()
    focus = driver.program.window.focusWidget()
    assert focus.accessibleName() == "Dual clip" and not focus.visibleRegion().isEmpty()
    in_palette(driver)  # a palette that is opened again
    assert "setting.learner.gamma" in in_palette(driver, "discount")
    action = palette.model.action(0)
    assert action is not None and action.why == "It has no effect with the other settings as they are."
    editing.restrict((), ("objective.dual_clip",))
    in_palette(driver)
    assert "setting.objective.dual_clip" not in in_palette(driver, "dual clip")


def test_a_door_of_a_part_that_is_off_is_not_there(driver: Driver, doors: DoorsController) -> None:
    assert [one.id for one in doors.all] == ["play", *(["learn"] if "teaching" in names() else []),
                                             *(["my_run"] if "trainers" in names() else [])]  # fmt: skip
    kept = list(driver.program.parts)
    driver.program.parts.clear()
    try:
        driver.program.preferences.change(door="learn")
        assert [one.id for one in doors.all] == ["play"] and doors.current is None and doors.shows("lessons")
        driver.program.preferences.change(door="play")
        assert doors.owner(DETAILS) == "Show everything"
    finally:
        driver.program.parts.extend(kept)


def test_learn_lists_the_lessons_alone_and_comes_back_to_them(driver: Driver, doors: DoorsController) -> None:
    window, lessons = driver.program.window, driver.program.part("teaching").lessons
    doors.enter(door(doors, "learn"))
    driver.settle()
    assert [id for id, dock in window.docks.items() if in_window(dock)] == ["lesson"]
    lessons.open("one_update")
    driver.qtbot.waitUntil(lambda: not lessons.player.busy)
    driver.settle()
    assert driver.program.transport.isVisible()
    lessons.player.leave()
    driver.settle()
    assert [id for id, dock in window.docks.items() if in_window(dock)] == ["lesson"]
    assert not driver.program.transport.isVisible()


def test_the_first_screen_leaves_the_lesson_so_that_no_key_moves_it_unseen(
    driver: Driver, doors: DoorsController
) -> None:
    window, lessons = driver.program.window, driver.program.part("teaching").lessons
    doors.enter(door(doors, "learn"))
    lessons.open("one_update")
    driver.qtbot.waitUntil(lambda: not lessons.player.busy)
    panel = home(driver)
    assert not lessons.is_open and not driver.program.workspace.mode.takeover.lesson
    assert window.focusWidget() is panel.doors[0] and panel.isVisible()
    QTest.keyClick(panel.doors[0], Qt.Key.Key_Right)
    QTest.keyClick(panel.doors[1], Qt.Key.Key_Return)
    driver.settle()
    assert in_window(window.docks["lesson"]) and not lessons.is_open


def test_a_panel_behind_another_tab_comes_to_the_front_and_one_in_front_is_hidden(driver: Driver) -> None:
    window, show = driver.program.window, driver.program.actions["panel.token_inspector"].trigger
    docks = window.docks["policy_bars"], window.docks["token_inspector"]
    driver.settle()
    assert [in_window(dock) for dock in docks] == [True, False] and docks[1].isVisible()
    show()
    driver.settle()
    assert [in_window(dock) for dock in docks] == [False, True]
    show()
    driver.settle()
    assert docks[1].isHidden()


ACTS: dict[str, Callable[[Application], object]] = {
    "a run": lambda program: program.runs.new_run(),
    "a panel": lambda program: program.window.show_panel(TOKEN_INSPECTOR),
    "a step": lambda program: program.player.step(),
    "the first screen is hidden": lambda program: program.actions["panel.home"].trigger(),
    "a panel from the menu": lambda program: program.actions["panel.comparison"].trigger(),
}


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
def test_the_panels_come_back_as_they_were_with_whatever_is_to_be_seen(
    driver: Driver, act: Callable[[Application], object]
) -> None:
    window = driver.program.window
    driver.program.doors.show_home()
    few = in_menus(driver)
    window.leave_alone()
    before = {id for id, dock in window.docks.items() if dock.isVisible()}
    home(driver)
    act(driver.program)
    driver.rest()
    assert few < in_menus(driver), "the menus are those of the panels"
    assert not window.alone and {id for id, dock in window.docks.items() if dock.isVisible()} == before
    assert driver.program.transport.isVisible()


def test_the_first_screen_stays_while_a_run_goes_on_and_goes_when_one_begins(driver: Driver) -> None:
    program, window = driver.program, driver.program.window
    program.player.set_length(None)
    program.doors.enter(program.doors.all[0])
    driver.qtbot.waitUntil(lambda: driver.head > 1)
    program.actions["home"].trigger()
    before = driver.head
    driver.qtbot.waitUntil(lambda: driver.head > before + 2)
    assert program.player.busy and window.alone == HOME.id and home(driver).doors[0].hasFocus()
    program.player.pause()
    driver.rest()
    assert window.alone == HOME.id
    program.player.run()
    driver.qtbot.waitUntil(lambda: not window.alone)
    program.player.pause()
    driver.rest()


@pytest.mark.parametrize("of", ["own", *EXAMPLES[:1]])
def test_a_run_that_is_already_open_is_shown_when_it_is_opened_from_the_first_screen(driver: Driver, of: str) -> None:
    program = driver.program
    driver.run(2)
    path = program.workspace.view.run.path if of == "own" else example(of)
    for _ in range(2):
        home(driver).run_wanted.emit(path)
        driver.qtbot.waitUntil(lambda: not program.window.alone)
        driver.opened()
        assert program.workspace.view.run.path == path


def test_another_size_of_type_leaves_the_first_screen_in_place_and_the_panels_fit_it_later(driver: Driver) -> None:
    program, window = driver.program, driver.program.window
    layout = driver.preferences.layout
    home(driver)
    program.look.set(scale=2.0)
    driver.settle()
    assert window.alone == HOME.id and [id for id, dock in window.docks.items() if in_window(dock)] == [HOME.id]
    program.actions["panel.comparison"].trigger()
    driver.settle()
    picture = arrangement(layout, language=False, space=size_class(window.size(), 2.0)).picture
    assert window.docks["step_detail"] in window.tabifiedDockWidgets(window.docks[picture])
    program.look.set(scale=1.0)
    driver.settle()
    shown = {
        frozenset((dock, *window.tabifiedDockWidgets(dock))) for dock in window.docks.values() if not dock.isHidden()
    }
    titles = {frozenset(one.windowTitle() for one in group if not one.isHidden()) for group in shown}
    bars = [bar for bar in window.findChildren(QTabBar) if bar.count() > 1 and in_window(bar)]
    assert bars and all({bar.tabText(tab) for tab in range(bar.count())} in titles for bar in bars)


def test_my_run_opens_a_pasted_path_and_a_pasted_log(driver: Driver, doors: DoorsController, tmp_path: Path) -> None:
    doors.enter(door(doors, "my_run"))
    driver.settle()
    panel = driver.program.window.panels["my_run"]
    paste = panel.paste  # type: ignore[attr-defined]
    QApplication.clipboard().setText(TRACE.as_uri())
    paste.setFocus()
    QTest.keyClick(paste, Qt.Key.Key_Return)
    driver.qtbot.waitUntil(lambda: driver.program.workspace.view.run.is_recorded)
    driver.settle()
    assert not driver.program.window.alone and driver.program.preferences.current.layout == "Recorded run"
    assert not isinstance(driver.program.window.focusWidget(), QAbstractButton), "Return presses nothing unasked"
    for log in LOGS:
        first = driver.program.workspace.run
        QApplication.clipboard().setText(log.read_text("utf-8"))
        driver.program.part("trainers").open_pasted()
        driver.qtbot.waitUntil(lambda first=first: driver.program.workspace.run is not first)  # type: ignore[misc]
        assert driver.program.workspace.view.run.is_recorded


def test_an_empty_clipboard_is_answered_in_a_sentence(driver: Driver) -> None:
    for text in ("", "x" * 100_000, "no such file"):
        QApplication.clipboard().setText(text)
        driver.program.part("trainers").open_pasted()
        driver.settle()
        assert driver.messages[-1] == "The clipboard has nothing to open: copy a path, or the lines of a log."


def test_a_number_leads_to_its_update(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    driver.run(5)
    monkeypatch.setattr(QInputDialog, "getInt", lambda *arguments: (2, True))
    driver.program.actions["go_update"].trigger()
    assert driver.program.workspace.cursor.step == 2
    monkeypatch.setattr(QInputDialog, "getInt", lambda *arguments: (4, False))
    driver.program.actions["go_update"].trigger()
    assert driver.program.workspace.cursor.step == 2


@pytest.mark.own_window
def test_a_window_that_is_closed_on_the_first_screen_opens_with_its_panels(driver: Driver) -> None:
    window = driver.program.window
    before = {id for id, dock in window.docks.items() if dock.isVisible()}
    home(driver)
    driver.program.shutdown.close()
    driver.qtbot.waitUntil(lambda: window.may_close)
    assert driver.program.layout_files.restore(window) is None
    assert not window.alone and {id for id, dock in window.docks.items() if not dock.isHidden()} >= before
