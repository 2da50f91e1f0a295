"""Runs of other trainers in the window: opened, stepped through, and followed while they are being written."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtWidgets import QInputDialog

from app.application import all_commands
from app.jobs.runner import Runner
from app.panel_registry import PANELS, TRAINING_HISTORY
from app.panels.controls.recorded import RecordedSettings
from app.trainers.controllers import recorded_follower
from app.trainers.panel_rows import COMPLETIONS
from app.trainers.recorded_run import RecordedRun
from app.workspace.workspace import Workspace
from grpo_core.trainers.conversion import convert
from grpo_core.trainers.importers import open_source
from tests.app.conftest import Driver
from tests.core.trainers.importers.test_text_sources import several_runs
from tests.core.trainers.trace_files import DATA, Written, copied

pytestmark = pytest.mark.one_window

SOURCES = DATA.parent / "sources"


def opened(driver: Driver, path: Path) -> RecordedRun:
    """Open a recorded run and wait until its series have been loaded."""
    driver.program.runs.open_path(path)
    driver.qtbot.waitUntil(lambda: isinstance(shown(driver.program.workspace), RecordedRun))
    run = shown(driver.program.workspace)
    assert isinstance(run, RecordedRun)
    driver.qtbot.waitUntil(lambda: run.computed == run.head)
    driver.settle()
    return run


def show_every_panel(driver: Driver) -> None:
    for spec in PANELS:
        if spec.id in driver.program.window.docks:
            driver.program.window.show_panel(spec)
            driver.settle()


def shown(workspace: Workspace) -> object:
    return workspace.run


@pytest.mark.quick_cases("grpo")
@pytest.mark.parametrize(
    "name",
    [
        "grpo",
        "two_processes",
        *(pytest.param(name, marks=pytest.mark.long) for name in ("entbonus", "short_generations")),
    ],
)
def test_a_trace_opens_at_its_last_step_and_every_panel_draws_every_step(driver: Driver, name: str) -> None:
    run = opened(driver, DATA / name)
    workspace = driver.program.workspace
    assert workspace.cursor.step == run.head == len(run.source)
    show_every_panel(driver)
    for step in range(1, run.head + 1):
        workspace.move_to(step)
        driver.settle()
        assert workspace.view.step.number == step
        for passed in range(workspace.view.step.passes):
            workspace.show_stage(workspace.cursor.stage, passed)
            driver.settle()
    assert not any("report" in message for message in driver.messages)


def test_a_run_that_is_opened_again_from_the_first_screen_is_shown(driver: Driver) -> None:
    run = opened(driver, DATA / "grpo")
    driver.program.doors.show_home()
    driver.settle()
    assert driver.program.window.alone
    assert opened(driver, DATA / "grpo") is run and not driver.program.window.alone


def test_a_run_that_was_converted_opens_as_the_recorded_run_that_it_is(driver: Driver, tmp_path: Path) -> None:
    convert(open_source(DATA / "grpo"), tmp_path / "tonight.grpo")
    run = opened(driver, tmp_path / "tonight.grpo")
    workspace = driver.program.workspace
    assert run.head == 2 and run.label(2) == 4 and workspace.view.step.step is not None
    assert workspace.view.step.step.completion_texts == open_source(DATA / "grpo").completions(2).completions
    assert not any("report" in message for message in driver.messages)


@pytest.mark.quick_cases("trl")
@pytest.mark.parametrize("path", ["trl", "verl", "verl_former"])
def test_a_source_of_texts_opens_and_says_what_it_lacks_and_how_to_get_it(driver: Driver, path: str) -> None:
    run = opened(driver, SOURCES / path)
    workspace = driver.program.workspace
    assert workspace.view.step.step is None and run.why_no_step
    detail = driver.program.window.panels["step_detail"]
    assert detail.summary(workspace.view) == run.why_no_step
    assert np.isfinite(run.series["reward_mean"].values).all()


def test_tokens_without_the_settings_of_their_loss_are_shown_with_a_sentence_on_what_is_assumed(driver: Driver) -> None:
    run = opened(driver, SOURCES / "verifiers_agent" / "traces.jsonl")
    workspace, panels = driver.program.workspace, driver.program.window.panels
    said = workspace.view.step.assumption
    assert workspace.view.step.step is not None and not run.why_no_step and "No settings of a loss" in said
    for name in ("token_inspector", "step_summary", "step_detail", "token_overview"):
        driver.program.window.show_panel(next(spec for spec in PANELS if spec.id == name))
        driver.settle()
    assert panels["token_inspector"].remark_label.text().startswith(said)  # type: ignore[attr-defined]
    assert said in panels["step_summary"].tokens_sentence.text()  # type: ignore[attr-defined]
    assert panels["token_overview"].assumption.text() == said  # type: ignore[attr-defined]
    assert all(said in foot for foot in panels["step_detail"].feet)  # type: ignore[attr-defined]
    assert panels["pipeline"].area.isHidden(), "no formula of the run is known"  # type: ignore[attr-defined]
    assert np.isnan(run.series["loss"].values).all() and np.isfinite(run.series["reward_mean"].values).all()
    show_every_panel(driver)
    assert not any("report" in message for message in driver.messages)


def test_another_run_of_a_database_is_offered_and_opened(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = several_runs(tmp_path)
    newest = opened(driver, path)
    offered = list[list[str]]()

    def choose(parent: object, title: str, label: str, items: list[str], *_: object) -> tuple[str, bool]:
        offered.append(items)
        return "first", True

    monkeypatch.setattr(QInputDialog, "getItem", choose)
    line = next(line for line in driver.program.window.messages.lines if line.message.id == "recorded notes")
    line.message.actions[0].run()
    driver.qtbot.waitUntil(lambda: shown(driver.program.workspace) is not newest)
    run = shown(driver.program.workspace)
    assert isinstance(run, RecordedRun) and run.title == "first" and run.head == 2
    assert offered == [[sibling.name for sibling in newest.source.siblings]]


def test_the_timeline_says_the_trainers_numbers(driver: Driver) -> None:
    run = opened(driver, DATA / "grpo")
    assert list(run.source.labels) == [2, 4]
    timeline = driver.program.window.panels["timeline"]
    assert timeline.place.text() == "Update 4 of 4"  # type: ignore[attr-defined]
    driver.program.workspace.move_to(0)
    driver.settle()
    assert driver.program.workspace.cursor.step == 1
    assert timeline.place.text() == "Viewing 2 of 4"  # type: ignore[attr-defined]


def test_the_history_counts_as_the_trainer_does_and_again_as_we_do_for_a_run_of_ours(driver: Driver) -> None:
    driver.program.window.resize(1600, 1000)
    run = opened(driver, DATA / "grpo")
    driver.program.window.show_panel(COMPLETIONS)  # the diagnosis takes most of the middle
    chart = driver.program.window.panels.of(TRAINING_HISTORY).charts[0]
    driver.qtbot.waitUntil(lambda: chart.frame.x.label == "trainer's step")  # once it has the room for it
    assert chart.frame.x_ticks() == [(1.0, "2"), (2.0, "4")]
    number_of = chart.frame.number_of
    assert number_of is not None and number_of(3) is None, "there is no third update"
    assert chart.read_at(2.0)[0][0] == "trainer's step 4"
    assert [row[0] for row in chart.table()[1][:]] == list(run.source.labels)
    driver.program.runs.new_run()
    driver.run(2)
    assert driver.head == 2 and chart.read_at(2.0)[0][0] == "update 2"
    assert chart.frame.x_ticks() == [(1.0, "1"), (2.0, "2")]


def test_the_toolbar_has_no_seed_speed_or_length_for_a_run_that_is_not_trained_here(driver: Driver) -> None:
    transport = driver.program.transport
    fields = (transport.seed, transport.speed, transport.length)
    assert all(field.isVisible() for field in fields)
    opened(driver, DATA / "grpo")
    assert not any(field.isVisible() for field in fields)
    driver.program.runs.new_run()
    driver.settle()
    assert all(field.isVisible() for field in fields)


@pytest.mark.quick_cases("run_n", "branch", "export_run")
@pytest.mark.parametrize("id", ["run_n", "branch", "save_as", "export_run", "new_seed"])
def test_what_would_continue_or_copy_it_says_why_not(driver: Driver, id: str) -> None:
    opened(driver, DATA / "grpo")
    command = next(command for command in all_commands(driver.program) if command.id == id)
    assert "another program" in command.blocked().lower()


def test_what_was_computed_of_a_run_is_there_when_it_is_opened_again(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded_follower, "LEAST_KEPT", 1)
    run = opened(driver, DATA / "grpo")
    driver.qtbot.waitUntil(lambda: not driver.program.part("trainers").recorded_runs.busy)
    before = run.series["loss"].values.copy()
    driver.program.runs.close_run()
    again = opened(driver, DATA / "grpo")
    assert again is not run and np.array_equal(again.series["loss"].values, before)
    fresh = RecordedRun(open_source(DATA / "grpo"))
    fresh.add_numbers(driver.program.part("trainers").recorded_runs.cache.rows(fresh.source))
    assert fresh.computed == fresh.head == 2


def test_a_step_that_is_written_meanwhile_appears(driver: Driver, tmp_path: Path) -> None:
    trace = Written(DATA / "entbonus", tmp_path, 2)
    run = opened(driver, trace.folder)
    assert run.head == 2
    trace.write(4)
    driver.program.part("trainers").recorded_runs.followers[run.id].look()
    driver.qtbot.waitUntil(lambda: run.computed == 4)
    assert driver.program.workspace.cursor.step == 4  # it was followed


def test_a_run_that_was_started_again_from_an_earlier_step_begins_anew(driver: Driver, tmp_path: Path) -> None:
    folder = copied("entbonus", tmp_path)
    run = opened(driver, folder)
    home = folder / "rank0"
    shutil.copytree(home / "attempt0", home / "attempt1")
    index = home / "attempt1/index.jsonl"
    index.write_text("".join(index.read_text().splitlines(keepends=True)[:3]))
    driver.program.part("trainers").recorded_runs.followers[run.id].look()
    driver.qtbot.waitUntil(lambda: shown(driver.program.workspace) is not run)
    fresh = shown(driver.program.workspace)
    assert isinstance(fresh, RecordedRun) and fresh.head == 3 and run not in driver.program.workspace.runs
    assert any("restarted" in message for message in driver.messages)


def test_a_folder_that_cannot_be_read_for_a_while_changes_nothing(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise OSError("the drive is away")

    run = opened(driver, DATA / "grpo")
    follower, said = driver.program.part("trainers").recorded_runs.followers[run.id], driver.messages
    monkeypatch.setattr(recorded_follower, "refreshed", away)
    follower.look()
    assert follower.busy
    driver.qtbot.waitUntil(lambda: not follower.busy)
    assert driver.messages == said and shown(driver.program.workspace) is run


def test_closing_waits_for_no_disk_that_does_not_answer(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, answers = threading.Event(), threading.Event()

    def silent(*_: object) -> tuple[int, None, bool]:
        asked.set()
        answers.wait(60)
        return 0, None, True

    run = opened(driver, DATA / "grpo")
    follower = driver.program.part("trainers").recorded_runs.followers[run.id]
    monkeypatch.setattr(recorded_follower, "refreshed", silent)
    waits = list[object]()
    monkeypatch.setattr(Runner, "close", lambda *_: waits.append("for the folder or the series"))
    try:
        follower.look()
        driver.qtbot.waitUntil(asked.is_set)
        driver.program.runs.close_run()
        driver.settle()
        assert waits == [] and not follower.busy
    finally:
        answers.set()
        monkeypatch.undo()
    driver.settle()
    assert run not in driver.program.workspace.runs and driver.program.workspace.runs


@pytest.mark.parametrize(
    ("name", "content", "opened", "words"),
    [
        ("notes.txt", "no run", "notes.txt", ("notes.txt",)),
        (
            "rollouts.jsonl",
            '{"prompt": "1+1=", "reply": "2", "mark": 1.0}\n',
            "rollouts.jsonl",
            ("rollouts.jsonl has the columns prompt, reply, mark",),
        ),
        ("notes.txt", "hello", ".", ("trackio", "verl")),
    ],
    ids=["no run", "of an unknown trainer", "a folder"],
)
def test_what_is_none_of_them_is_refused_by_what_it_holds(
    name: str, content: str, opened: str, words: tuple[str, ...], driver: Driver, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / name).write_text(content)
    driver.program.runs.open_path(tmp_path / "other" / opened)
    driver.qtbot.waitUntil(lambda: bool(driver.messages))
    assert all(word in driver.messages[0] for word in words)


def test_a_run_whose_last_update_cannot_be_read_opens_and_says_so_where_its_completions_would_be(
    driver: Driver, tmp_path: Path
) -> None:
    folder = copied("grpo", tmp_path)
    last = max(folder.rglob("step_*.parquet"))
    last.write_bytes(last.read_bytes()[:500])
    driver.program.runs.open_path(folder)
    workspace = driver.program.workspace
    driver.qtbot.waitUntil(lambda: isinstance(shown(workspace), RecordedRun))
    driver.settle()
    driver.program.window.show_panel(COMPLETIONS)
    driver.settle()
    completions = driver.program.window.panels.of(COMPLETIONS)
    assert completions.empty.text().startswith(f"{last.name} cannot be read")
    workspace.move_to(1)
    driver.settle()
    assert completions.table.isVisible() and workspace.view.step.number == 1


def test_files_that_are_opened_while_another_is_read_are_each_refused_in_a_sentence(
    driver: Driver, tmp_path: Path
) -> None:
    names = [f"{number}.bin" for number in range(3)]
    for name in names:
        (tmp_path / name).write_bytes(b"nothing of ours")
        driver.program.runs.open_path(tmp_path / name)
    driver.qtbot.waitUntil(lambda: all(any(name in text for text in driver.messages) for name in names), timeout=30_000)


@pytest.mark.parametrize("name", ["trl_out", "wandb_history.csv", "verl_console.log", "events", "trl_out/checkpoint-8"])
@pytest.mark.quick_cases("trl_out")
def test_a_log_of_scalars_opens_with_its_history_and_every_panel_draws_it(driver: Driver, name: str) -> None:
    run = opened(driver, SOURCES / "logs" / name)
    assert run.head == 4 and run.label(4) == 8
    shown = driver.program.window.panels["controls"].findChild(RecordedSettings)
    assert shown is not None and "are not recorded" in shown.heading.text() and shown.table.isHidden()
    assert run.series["reward_mean"].values == pytest.approx([0.02, 0.04, 0.06, 0.08], rel=1e-6)
    show_every_panel(driver)
    driver.program.workspace.move_to(2)
    driver.settle()
    assert not any("report" in message for message in driver.messages)
