"""The diagnosis of a recorded run in the window: the findings of ``grpo-lab diagnose``, and navigation to their
places.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from pytestqt.qtbot import QtBot

from app.trainers.panel_rows import DIAGNOSIS
from app.trainers.panels.diagnosis.panel import DiagnosisPanel
from app.trainers.panels.diagnosis.report import EVIDENCE, Entry, entries
from app.trainers.recorded_run import RecordedRun
from grpo_core.packing import packed, unpacked
from grpo_core.trainers.health import Evidence, diagnose
from grpo_core.trainers.importers import open_source
from grpo_core.trainers.recorded_jobs import examination
from tests.app.conftest import Driver
from tests.app.trainers.panels.conftest import Drawn, bandit
from tests.core.trainers.trace_files import DATA

DISEASED = DATA.parent / "diseased"
SOURCES = DATA.parent / "sources"


@pytest.fixture
def panel(drawn: Drawn) -> DiagnosisPanel:
    return drawn(DIAGNOSIS)


def examined(qtbot: QtBot, panel: DiagnosisPanel, path: object) -> RecordedRun:
    """Show a recorded run and wait until it has been examined."""
    run = RecordedRun(open_source(path))  # type: ignore[arg-type]
    panel.workspace.activate(run)
    panel.draw(panel.workspace.view)
    panel.button.click()
    qtbot.waitUntil(lambda: not panel.examination.busy, timeout=30_000)
    panel.draw(panel.workspace.view)
    return run


def rows(panel: DiagnosisPanel) -> list[Entry]:
    """Return what the panel shows of the active run."""
    run = panel.workspace.run
    result = None if run is None else panel.examination.of(run.id)
    assert result is not None
    return entries(result)


@pytest.mark.parametrize("name", ["kl_explodes", "reward_constant", "ever_longer"])
def test_it_finds_what_the_command_finds(qtbot: QtBot, panel: DiagnosisPanel, name: str) -> None:
    examined(qtbot, panel, DISEASED / name)
    told = diagnose(open_source(DISEASED / name)).findings
    shown = [entry.title for entry in rows(panel)]
    assert [card.entry for card in panel.cards] == rows(panel)
    assert shown[0] == "From the reward to a better policy"
    assert shown[1 : len(told) + 1] == [finding.title for finding in told] and told
    notices = sum(finding.grade == "notice" for finding in told)
    assert f"problems: {len(told) - notices}, notices: {notices}." in panel.status.text()


@pytest.mark.parametrize("in_front", [False, True])
def test_evidence_leads_to_the_step_the_completion_and_the_token(
    qtbot: QtBot, panel: DiagnosisPanel, in_front: bool
) -> None:
    run = examined(qtbot, panel, DISEASED / "kl_explodes")
    card = next(card for card in panel.cards if any(one.token is not None for one in card.entry.evidence))
    at = next(n for n, one in enumerate(card.entry.evidence) if one.token is not None)
    assert card.evidence is not None
    asked = list[str]()
    panel.panel_wanted.connect(asked.append)
    if in_front:
        card.evidence.activated_cell.emit(at, "step")
    else:  # a key that goes from row to row leaves the page in front
        card.evidence.selected.emit(at)
    one = card.entry.evidence[at]
    assert run.label(panel.workspace.cursor.step) == one.step
    assert one.row is not None and one.token is not None
    assert (panel.workspace.selection.row, panel.workspace.selection.token) == (one.row - 1, one.token - 1)
    assert asked == ["token_inspector"] * in_front


def test_a_click_on_the_strip_shows_the_step(qtbot: QtBot, panel: DiagnosisPanel) -> None:
    run = examined(qtbot, panel, DISEASED / "ever_longer")
    panel.resize(700, 500)
    panel.show()
    strip = panel.cards[1].strip
    assert strip is not None and len(strip.course) == run.head
    for place, (label, _) in enumerate(strip.course):
        x = round((place + 0.5) / len(strip.course) * strip.width())
        qtbot.mouseClick(strip, Qt.MouseButton.LeftButton, pos=QPoint(x, 5))
        assert run.label(panel.workspace.cursor.step) == label
    qtbot.keyClick(strip, Qt.Key.Key_Left)
    panel.draw(panel.workspace.view)
    qtbot.keyClick(strip, Qt.Key.Key_Left)
    assert run.label(panel.workspace.cursor.step) == strip.course[-3][0]


def test_evidence_has_the_columns_that_it_fills_and_no_row_is_scrolled(qtbot: QtBot, panel: DiagnosisPanel) -> None:
    examined(qtbot, panel, DISEASED / "clip_too_narrow")
    panel.show()
    found = rows(panel)[1]
    assert found.evidence and all(one.row and one.token and "ratio" in one.what for one in found.evidence)
    of_updates = dataclasses.replace(found, evidence=(Evidence(step=4, what="of the whole update"),))
    healthy = next(entry for entry in rows(panel) if entry.healthy)
    cases = (found, [c.key for c in EVIDENCE[1:]]), (of_updates, ["step", "what"]), (healthy, ["about", "what"])
    for entry, keys in cases:
        panel.show_entries([entry])
        panel.draw_cards(panel.workspace.view)
        (card,) = panel.cards
        assert card.evidence is not None and [c.key for c in card.evidence.table.columns] == keys
        for width in (370, 640, 1400):
            panel.resize(width, 500)
            table = card.evidence
            for bar in (table.horizontalScrollBar(), table.verticalScrollBar()):
                qtbot.waitUntil(lambda bar=bar: bar.maximum() == 0)  # type: ignore[misc]
            assert 0 <= width - card.width() < 50


@pytest.mark.parametrize(
    ("path", "agrees"),
    [(DATA / "grpo", True), (SOURCES / "nemo_rl", True), (DATA / "fault_clip", False)],
    ids=["agrees", "without a loss", "departs"],
)
def test_the_audit_is_one_of_the_rows(qtbot: QtBot, panel: DiagnosisPanel, path: Path, agrees: bool) -> None:
    examined(qtbot, panel, path)
    row = next(entry for entry in rows(panel) if entry.title.startswith("Audit"))
    assert row.title == ("Audit: the numbers agree" if agrees else "Audit: numbers depart")
    assert bool(row.evidence) == (not agrees)
    card = next(card for card in panel.cards if card.entry == row)
    if agrees:
        assert card.sides is None
        return
    assert card.sides is not None and row.put_right is not None
    loss = row.put_right.rows[0]
    assert [card.sides.table.value(0, column) for column in range(3)] == ["Loss", loss.ran, loss.other]
    assert any(one.token is not None and "put right" in one.what for one in row.evidence)


def test_a_source_of_texts_is_examined_as_far_as_it_goes(qtbot: QtBot, panel: DiagnosisPanel) -> None:
    examined(qtbot, panel, SOURCES / "trl")
    *_, audit, _, rest = rows(panel)
    assert "nothing to compare" in audit.title and rest.title == "Not looked at"


def test_a_run_without_an_update_cannot_be_examined(panel: DiagnosisPanel) -> None:
    panel.workspace.activate(bandit())
    panel.draw(panel.workspace.view)
    assert not panel.button.isEnabled() and "no update yet" in panel.button.toolTip()


def test_another_run_does_not_show_the_findings_of_the_first(qtbot: QtBot, panel: DiagnosisPanel) -> None:
    examined(qtbot, panel, DISEASED / "kl_explodes")
    first = panel.workspace.run
    assert first is not None
    panel.workspace.activate(RecordedRun(open_source(DATA / "grpo")))
    panel.draw(panel.workspace.view)
    assert panel.cards == []
    panel.workspace.activate(first)
    panel.draw(panel.workspace.view)
    assert [card.entry for card in panel.cards] == rows(panel) != [], "its own are there again"


def test_what_is_found_crosses_to_the_window_unchanged() -> None:
    for result in examination(str(DISEASED / "kl_explodes"), poll=lambda: None):
        assert unpacked(*packed(result)) == result


@pytest.mark.parametrize("width", [340, 371, 900])
def test_every_card_is_read_without_scrolling_sideways(qtbot: QtBot, panel: DiagnosisPanel, width: int) -> None:
    examined(qtbot, panel, DISEASED / "kl_explodes")
    panel.resize(width, 400)
    panel.show()
    panel.draw(panel.workspace.view)
    for card in panel.cards:
        assert card.geometry().right() < width
        assert all(text.width() <= width for text in card.texts)


def test_an_examination_that_finds_the_same_again_leaves_the_cards_alone(qtbot: QtBot, panel: DiagnosisPanel) -> None:
    examined(qtbot, panel, DISEASED / "kl_explodes")
    before = [*panel.cards]
    panel.button.click()
    panel.draw(panel.workspace.view)
    assert panel.cards == before, "while it is examined"
    qtbot.waitUntil(lambda: not panel.examination.busy, timeout=30_000)
    panel.draw(panel.workspace.view)
    assert panel.cards == before


def test_what_was_healthy_has_its_figure_and_leads_to_the_step_of_the_largest_value(
    qtbot: QtBot, panel: DiagnosisPanel
) -> None:
    run = examined(qtbot, panel, DISEASED / "clip_too_narrow")
    healthy = next(entry for entry in rows(panel) if entry.healthy)
    titles = [one.title for one in healthy.healthy]
    far = titles.index("Advantages far beyond the others")
    assert healthy.rows[far][-1] == "largest advantage: 1.162 to 1.491, most in step 4"
    place = healthy.place(far)
    assert place is not None
    panel.show_place(place, in_front=False)
    assert run.label(panel.workspace.view.cursor.step) == 4
    assert healthy.place(titles.index("Reward functions that go against each other")) is None


def test_a_run_of_this_program_is_examined_on_request(driver: Driver) -> None:
    workspace = driver.program.workspace
    panel = driver.program.window.panels.of(DIAGNOSIS)
    driver.program.window.docks[DIAGNOSIS.id].show()
    driver.program.window.docks[DIAGNOSIS.id].raise_()
    driver.run(12)
    driver.settle()
    assert panel.examination.of(workspace.view.run.id) is None, "nothing is examined unasked"
    panel.redraw()
    assert "recompute" not in panel.status.text(), "nobody else has a loss of this run"
    panel.button.click()
    driver.qtbot.waitUntil(lambda: not panel.examination.busy, timeout=30_000)
    panel.redraw()
    assert panel.status.text().startswith("12 updates examined")
    (audit,) = (one for one in panel.entries if one.title.startswith("Audit"))
    assert audit.grade == "" and "This program trained the run" in audit.text
    panel.show_place(Evidence(step=7, row=3, what=""), in_front=False)
    assert workspace.view.cursor.step == 7 and workspace.view.selection.row == 2
    workspace.follow()
    driver.run(3)
    panel.redraw()
    assert "More have been made since: 3" in panel.status.text()
