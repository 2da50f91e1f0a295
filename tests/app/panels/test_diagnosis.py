"""The diagnosis of a recorded run in the window: the findings of ``grpo-lab diagnose``, and the way to their places."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.panels.diagnosis.panel import DiagnosisPanel
from app.panels.diagnosis.report import EVIDENCE, FINDINGS, Entry, entries
from app.panels.registry import DIAGNOSIS
from app.theme.tokens import LIGHT
from app.workspace.recorded_run import RecordedRun
from app.workspace.run_handle import RunHandle
from app.workspace.workspace import Workspace
from grpo_core.config import Settings
from grpo_core.experiments.packing import packed, unpacked
from grpo_core.experiments.recorded_jobs import examination
from grpo_core.health import Evidence, diagnose
from grpo_core.learners import origin
from grpo_core.runs.importers import open_source
from tests.core.traces import DATA

DISEASED = DATA.parent / "diseased"
SOURCES = DATA.parent / "sources"


def nothing() -> None:
    """The poll of an examination that nobody gives up."""


@pytest.fixture
def workspace(qapp: object) -> Workspace:
    return Workspace(Settings(), LIGHT)


@pytest.fixture
def panel(workspace: Workspace) -> Iterator[DiagnosisPanel]:
    made = DIAGNOSIS.make(workspace)
    yield made
    workspace.close()
    made.deleteLater()


def examined(qtbot: QtBot, panel: DiagnosisPanel, path: object) -> RecordedRun:
    """Show a recorded run and examine it to the end."""
    run = RecordedRun(open_source(path))  # type: ignore[arg-type]
    panel.workspace.activate(run)
    panel.draw(panel.workspace.view)
    panel.button.click()
    qtbot.waitUntil(lambda: not panel.examination.busy, timeout=30_000)
    panel.draw(panel.workspace.view)
    return run


def rows(panel: DiagnosisPanel) -> list[Entry]:
    """What the panel shows of the run that is active."""
    run = panel.workspace.run
    result = None if run is None else panel.examination.of(run.id)
    assert result is not None
    return entries(result)


@pytest.mark.parametrize("name", ["kl_explodes", "reward_constant", "ever_longer"])
def test_it_finds_what_the_command_finds(qtbot: QtBot, panel: DiagnosisPanel, name: str) -> None:
    examined(qtbot, panel, DISEASED / name)
    told = diagnose(open_source(DISEASED / name)).findings
    shown = [entry.cells[2] for entry in rows(panel)]
    assert shown[: len(told)] == [finding.title for finding in told] and told
    assert str(len(told)) in panel.status.text()


def test_evidence_leads_to_the_step_the_completion_and_the_token(qtbot: QtBot, panel: DiagnosisPanel) -> None:
    run = examined(qtbot, panel, DISEASED / "kl_explodes")
    found = rows(panel)
    place = next(n for n, entry in enumerate(found) if any(one.token is not None for one in entry.evidence))
    panel.findings.selected.emit(place)
    at = next(n for n, one in enumerate(found[place].evidence) if one.token is not None)
    panel.evidence.activated_cell.emit(at, "step")
    one = found[place].evidence[at]
    assert run.label(panel.workspace.cursor.step) == one.step
    assert one.row is not None and one.token is not None
    assert (panel.workspace.selection.row, panel.workspace.selection.token) == (one.row - 1, one.token - 1)


def test_a_saturated_clip_is_shown_at_a_token_and_empty_columns_leave_their_room(
    qtbot: QtBot, panel: DiagnosisPanel
) -> None:
    examined(qtbot, panel, DISEASED / "clip_too_narrow")
    panel.resize(1400, 500)
    panel.show()
    found = rows(panel)[0]
    assert found.evidence and all(one.row and one.token and "ratio" in one.what for one in found.evidence)
    panel.entries = [dataclasses.replace(found, evidence=(Evidence(step=4, what="of the whole update"),))]
    panel.show_chosen()
    assert [panel.evidence.isColumnHidden(n) for n in range(len(EVIDENCE))] == [False, True, True, False, True]
    panel.entries = [found]
    panel.show_chosen()
    assert not any(panel.evidence.isColumnHidden(n) for n in range(len(EVIDENCE)))
    panel.resize(640, 300)
    assert not panel.evidence.isColumnHidden(3) and panel.evidence.isColumnHidden(4)


@pytest.mark.parametrize(("name", "title"), [("grpo", "agrees"), ("fault_clip", "departs")])
def test_the_audit_is_one_of_the_rows(qtbot: QtBot, panel: DiagnosisPanel, name: str, title: str) -> None:
    examined(qtbot, panel, DATA / name)
    row = next(entry for entry in rows(panel) if str(entry.cells[2]).startswith("Audit"))
    assert title in str(row.cells[2])
    assert bool(row.evidence) == (title == "departs")


def test_a_source_of_texts_is_examined_as_far_as_it_goes(qtbot: QtBot, panel: DiagnosisPanel) -> None:
    examined(qtbot, panel, SOURCES / "trl")
    *_, audit, rest = rows(panel)
    assert "nothing to compare" in str(audit.cells[2]) and "Not looked at" in rest.text


def test_a_run_of_this_program_has_nothing_to_examine(workspace: Workspace, panel: DiagnosisPanel) -> None:
    workspace.activate(RunHandle(title="Bandit", origin=origin(Settings()), path=DATA / "none.grpo"))
    panel.draw(workspace.view)
    assert not panel.button.isEnabled() and "File > Open" in panel.status.text()


def test_another_run_does_not_show_the_findings_of_the_first(qtbot: QtBot, panel: DiagnosisPanel) -> None:
    examined(qtbot, panel, DISEASED / "kl_explodes")
    first = panel.workspace.run
    assert first is not None
    panel.workspace.activate(RecordedRun(open_source(DATA / "grpo")))
    panel.draw(panel.workspace.view)
    assert panel.findings.table.rowCount() == 0
    panel.workspace.activate(first)
    panel.draw(panel.workspace.view)
    assert panel.findings.table.rowCount() == len(rows(panel)), "its own are there again"


def test_what_is_found_crosses_to_the_window_unchanged() -> None:
    for result in examination(str(DISEASED / "kl_explodes"), poll=nothing):
        assert unpacked(*packed(result)) == result


def test_in_a_narrow_panel_the_chosen_finding_stands_below_the_table(qtbot: QtBot, panel: DiagnosisPanel) -> None:
    examined(qtbot, panel, DISEASED / "kl_explodes")
    panel.show()
    for width, height, orientation in ((370, 330, Qt.Orientation.Vertical), (900, 300, Qt.Orientation.Horizontal)):
        panel.resize(width, height)
        assert panel.split.orientation() == orientation
        assert panel.evidence.width() <= width and panel.findings.height() <= height


def test_a_run_without_findings_has_no_column_of_how_bad_they_are(qtbot: QtBot, panel: DiagnosisPanel) -> None:
    examined(qtbot, panel, SOURCES / "trl")
    panel.resize(370, 420)
    panel.show()
    assert [panel.findings.isColumnHidden(n) for n in range(len(FINDINGS))] == [True, True, False]
    examined(qtbot, panel, DISEASED / "kl_explodes")
    assert not any(panel.findings.isColumnHidden(n) for n in range(len(FINDINGS)))


def test_below_a_short_table_the_finding_has_the_room(qtbot: QtBot, panel: DiagnosisPanel) -> None:
    examined(qtbot, panel, DISEASED / "kl_explodes")
    panel.resize(370, 420)
    panel.show()
    last = panel.findings.rowViewportPosition(len(panel.entries) - 1) + panel.findings.rowHeight(0)
    qtbot.waitUntil(lambda: last <= panel.findings.viewport().height() <= last + 4)
