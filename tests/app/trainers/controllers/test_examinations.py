"""A recorded run is examined when it is opened, and its problems are reported without a click."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.panel_registry import TOKEN_INSPECTOR
from app.trainers.controllers import examinations
from app.trainers.controllers.examinations import FOUND
from app.trainers.panel_rows import COMPLETIONS, DIAGNOSIS
from app.trainers.panels.diagnosis.report import problems
from app.trainers.recorded_run import RecordedRun
from app.widgets.panel import in_window
from grpo_core.trainers.health import diagnose
from grpo_core.trainers.health.grade import Grade
from grpo_core.trainers.importers import open_source
from tests.app.conftest import Driver
from tests.core.trainers.trace_files import DATA, Written

DISEASED = DATA.parent / "diseased"


def examined(driver: Driver, path: Path) -> RecordedRun:
    """Open a recorded run, and do nothing until it has been examined."""
    driver.program.runs.open_path(path)
    workspace, examination = driver.program.workspace, driver.program.part("trainers").examination

    def complete() -> bool:
        run = workspace.run
        result = None if run is None or run.path != path else examination.of(run.id)
        return result is not None and result.verdict is not None and not examination.busy

    driver.qtbot.waitUntil(complete, timeout=30_000)
    driver.settle()
    run = workspace.run
    assert isinstance(run, RecordedRun)
    return run


def message(driver: Driver) -> str | None:
    """Return the message about findings, or None if there is none."""
    lines = (line.message for line in driver.program.window.messages.lines)
    return next((message.text for message in lines if message.id == FOUND), None)


def opened_unexamined(driver: Driver, path: Path, monkeypatch: pytest.MonkeyPatch) -> RecordedRun:
    """Open a recorded run whose updates take too long to be examined unasked."""
    monkeypatch.setattr(RecordedRun, "large", property(lambda self: True, lambda self, value: None), raising=False)
    driver.program.runs.open_path(path)
    workspace = driver.program.workspace
    driver.qtbot.waitUntil(
        lambda: isinstance(workspace.run, RecordedRun) and workspace.run.computed == workspace.run.head
    )
    driver.qtbot.waitUntil(lambda: not driver.program.part("trainers").recorded_runs.busy)
    run = workspace.run
    assert isinstance(run, RecordedRun)
    return run


def examined_behind(driver: Driver, path: Path, monkeypatch: pytest.MonkeyPatch) -> RecordedRun:
    """Open a recorded run, bring its completions to the front, and have it examined behind them."""
    run = opened_unexamined(driver, path, monkeypatch)
    driver.program.window.show_panel(COMPLETIONS)
    driver.settle()
    driver.program.part("trainers").examination.examine(run.id, run.path, run.head)
    driver.qtbot.waitUntil(lambda: not driver.program.part("trainers").examination.busy, timeout=30_000)
    driver.settle()
    return run


@pytest.mark.quick_cases("reward_constant")
@pytest.mark.parametrize("name", ["kl_explodes", "reward_constant"])
def test_the_findings_of_a_run_stand_beside_it_when_it_is_opened(driver: Driver, name: str) -> None:
    examined(driver, DISEASED / name)
    found = diagnose(open_source(DISEASED / name)).findings
    titles, serious = [one.title for one in found], [one for one in found if one.grade is not Grade.NOTICE]
    dock, panel = driver.program.window.docks[DIAGNOSIS.id], driver.program.window.panels.of(DIAGNOSIS)
    assert in_window(dock) and message(driver) is None
    assert dock.windowTitle() == f"Diagnosis ({len(serious)})"
    assert f"problems: {len(serious)}, notices: {len(found) - len(serious)}." in panel.status.text()
    chain, *entries = panel.entries
    assert chain.title == "From the reward to a better policy"
    assert [entry.title for entry in entries][: len(titles)] == titles


def test_where_the_diagnosis_is_out_of_sight_a_message_names_the_findings(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    examined_behind(driver, DATA / "fault_clip", monkeypatch)
    text = message(driver)
    assert text is not None and "Audit: numbers depart" in text


def test_a_healthy_run_is_passed_over_in_silence(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    examined_behind(driver, DATA / "grpo", monkeypatch)
    assert message(driver) is None
    assert driver.program.window.docks[DIAGNOSIS.id].windowTitle() == "Diagnosis"


def test_the_message_leads_to_the_diagnosis_and_goes_with_its_run(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    examined_behind(driver, DISEASED / "kl_explodes", monkeypatch)
    line = next(line for line in driver.program.window.messages.lines if line.message.id == FOUND)
    dock = driver.program.window.docks[DIAGNOSIS.id]
    line.message.actions[0].run()
    driver.settle()
    assert in_window(dock)
    driver.program.runs.new_run()
    driver.settle()
    assert message(driver) is None and dock.windowTitle() == "Diagnosis"


def test_a_run_whose_updates_take_long_is_examined_only_when_somebody_asks(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = opened_unexamined(driver, DISEASED / "kl_explodes", monkeypatch)
    driver.settle()
    assert driver.program.part("trainers").examination.of(run.id) is None


def test_a_token_that_is_evidence_is_shown_among_its_tokens(driver: Driver) -> None:
    examined(driver, DISEASED / "kl_explodes")
    panel, window = driver.program.window.panels.of(DIAGNOSIS), driver.program.window
    driver.settle()
    card = next(card for card in panel.cards if card.entry.evidence and card.entry.evidence[0].token)
    assert card.evidence is not None
    card.evidence.selected.emit(0)
    driver.settle()
    assert in_window(window.docks[DIAGNOSIS.id]) and not in_window(window.docks[TOKEN_INSPECTOR.id])
    card.evidence.activated_cell.emit(0, "token")
    driver.settle()
    assert in_window(window.docks[TOKEN_INSPECTOR.id])
    evidence = card.entry.evidence[0]
    assert evidence.token is not None
    assert driver.program.workspace.selection.token == evidence.token - 1


def test_a_run_that_grows_is_examined_again_and_what_is_new_is_said(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examinations, "PAUSE", 0.1)
    trace = Written(DISEASED / "rate_too_high", tmp_path, 3)
    run = examined(driver, trace.folder)
    examination, panel = driver.program.part("trainers").examination, driver.program.window.panels.of(DIAGNOSIS)

    def titles() -> list[str]:
        known = examination.of(run.id)
        return [] if known is None else problems(known)

    assert titles() == [] and message(driver) is None
    trace.write(12)
    driver.program.part("trainers").recorded_runs.followers[run.id].look()
    driver.qtbot.waitUntil(lambda: message(driver) is not None, timeout=30_000)
    told = [one.title for one in diagnose(open_source(trace.folder)).findings if one.grade is not Grade.NOTICE]
    driver.settle()
    assert told and titles() == told and told[0] in [card.entry.title for card in panel.cards]
    known = examination.of(run.id)
    assert known is not None and known.head == run.head == 12
    assert message(driver) == f"{run.title}, 12 updates examined: new: {', '.join(told)}."


def test_what_was_found_out_about_a_run_goes_with_it(driver: Driver) -> None:
    examination, manager = driver.program.part("trainers").examination, driver.program.run_manager
    first, second = examined(driver, DISEASED / "kl_explodes"), examined(driver, DATA / "grpo")
    manager.close_run(first)
    assert examination.of(first.id) is None
    assert examination.of(second.id) is not None


def test_a_run_that_is_closed_while_it_is_examined_keeps_no_other_from_being_examined(driver: Driver) -> None:
    program = driver.program
    program.runs.open_path(DISEASED / "kl_explodes")
    driver.qtbot.waitUntil(lambda: program.part("trainers").examination.busy)
    closed = program.workspace.run
    assert closed is not None
    program.run_manager.close_run(closed)
    examined(driver, DATA / "grpo")
    assert program.part("trainers").examination.of(closed.id) is None
