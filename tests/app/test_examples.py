"""The recorded example: opened from the menu in every panel, without torch, and never written to."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from app.examples import EXAMPLES, RECORDED, TITLES, example, is_example
from app.panel_registry import CONTROLS
from app.panels.controls.panel import FOR_A_BRANCH
from app.training.controller import State
from app.workspace.player import Mode
from app.workspace.run_handle import RunHandle
from grpo_core.config import Settings, folder_settings
from grpo_core.errors import GrpoError
from grpo_core.explain import Numbers, Quantity, explain_from
from grpo_core.lm.engines import ENGINES
from grpo_core.lm.learner import LanguageLearner
from grpo_core.metrics import metrics
from grpo_core.runs.run_file import RunReader
from tests.app.conftest import Driver
from tools import make_real_examples
from tools.make_example import ARITHMETIC, GAMEABLE, RESOURCES

UPDATES = ARITHMETIC.updates


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def as_recorded(name: str, digest: str) -> tuple[Settings, int]:
    """Return the settings and number of updates in the recording tool. ``digest`` is that of the model's files."""
    if name == EXAMPLES[0]:
        return ARITHMETIC.settings, UPDATES
    recording = make_real_examples.RECORDINGS[name]
    changes = make_real_examples.SHARED | dict(recording.changes)
    return folder_settings(make_real_examples.MODEL, digest).replace(changes), recording.updates


@pytest.mark.parametrize("name", EXAMPLES)
def test_it_is_small_whole_and_made_by_the_tool(name: str) -> None:
    path = example(name)
    assert path.stat().st_size <= (ARITHMETIC.largest if name == EXAMPLES[0] else make_real_examples.LARGEST)
    assert is_example(path)
    assert not is_example(path.parent.parent / path.name)
    with RunReader.open(path) as reader:
        wanted, updates = as_recorded(name, reader.meta.settings.model.digest)
        assert reader.last == updates
        assert reader.meta.ended
        assert reader.meta.settings == reader.origin.settings == wanted
        assert not any(reader.step(number).resume for number in (1, updates)), "no weights: it is looked at only"
        assert reader.meta.parent_path == ""


def test_each_has_its_own_name_in_the_list_of_runs() -> None:
    titles = []
    for name in EXAMPLES:
        run = RunHandle.open(example(name))
        titles.append(run.title)
        run.close_file()
    assert titles == [TITLES[name] for name in EXAMPLES]
    assert len(set(titles)) == len(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_its_loss_and_metrics_are_recomputed_from_its_tokens(name: str) -> None:
    with RunReader.open(example(name)) as reader:
        for number in (1, reader.last):
            numbers = Numbers(reader.step(number))
            for metric, value in metrics(numbers.step).items():
                allowed = explain_from(numbers, Quantity(metric)).tolerance
                recorded = reader.series(metric)[number - 1]
                assert value == pytest.approx(recorded, rel=0, abs=allowed, nan_ok=True), metric


@pytest.mark.parametrize("name", make_real_examples.RECORDINGS)
def test_a_recorded_real_model_has_a_name_and_no_place_on_a_machine(name: str) -> None:
    with RunReader.open(example(name)) as reader:
        folders = {reader.step(number).settings.model.folder for number in range(1, reader.last + 1)}
        assert folders == {make_real_examples.MODEL}


def test_it_is_read_without_torch() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from app.examples import example\n"
        "from app.workspace.answers import watched\n"
        "from app.workspace.run_handle import RunHandle\n"
        "run = RunHandle.open(example())\n"
        "steps = [run.step(n) for n in range(1, run.head + 1)]\n"
        "right = [sum(watched(s, n, run.origin)[1].right for n in range(8)) for s in (steps[0], steps[-1])]\n"
        "print(run.head, *right)\n"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout.split() == [str(UPDATES), "3", "8"]


def test_the_menu_opens_it_to_be_looked_at_only_but_for_a_copy(driver: Driver, tmp_path: Path) -> None:
    before, program = digest(example()), driver.program
    driver.open_example()
    driver.settle()
    run = program.workspace.view.run
    assert (run.path, run.head, run.read_only) == (example(), UPDATES, RECORDED)
    controls = program.window.panels.of(CONTROLS)
    assert controls.read_only_note.isVisible() and controls.read_only_note.text() == RECORDED
    assert controls.next_heading.text() == FOR_A_BRANCH, "no slider claims to change what comes next in this run"
    assert driver.messages == [], "no message covers the history"
    assert program.window.docks["evolution"].isVisible()
    assert not program.actions["step"].isEnabled()
    program.player.set_speed(30.0)
    program.actions["run"].trigger()
    assert program.player.mode is Mode.REPLAYING and program.workspace.cursor.step < UPDATES, "Run replays it"
    driver.qtbot.waitUntil(lambda: program.player.mode is Mode.RESTING)
    driver.settle()
    assert program.workspace.cursor.step == UPDATES
    program.actions["step_back"].trigger()
    driver.settle()
    assert program.workspace.cursor.step == UPDATES - 1
    assert program.actions["step"].isEnabled(), "it can be gone through"
    program.actions["step"].trigger()
    driver.settle()
    assert program.workspace.cursor.step == UPDATES
    with pytest.raises(GrpoError, match="nothing is computed"):
        program.run_manager.training.make_ready()
    assert program.controller.state is State.IDLE
    driver.open_example()
    driver.settle()
    assert [run.path for run in program.workspace.runs].count(example()) == 1
    program.run_manager.save_as(run, tmp_path / "copy.grpo")
    copy = RunHandle.open(tmp_path / "copy.grpo")
    assert copy.read_only == "", "a copy is an ordinary run"
    copy.close_file()
    program.actions["close_run"].trigger()
    driver.settle()
    assert digest(example()) == before
    there = {path.name for path in example().parent.iterdir()}
    assert there == {example(name).name for name in EXAMPLES}, "no log and no lock beside it"


def test_the_start_near_the_turn_is_small_and_its_last_update_can_be_gone_on_from() -> None:
    path = RESOURCES / GAMEABLE.out
    assert path.stat().st_size <= GAMEABLE.largest
    with RunReader.open(path) as reader:
        assert reader.last == GAMEABLE.updates
        assert reader.meta.ended
        assert reader.meta.settings == reader.origin.settings == GAMEABLE.settings
        assert reader.step(reader.last).resume and not reader.step(1).resume
        assert reader.thinned == (GAMEABLE.thinned,)
        held_out = reader.series("accuracy_greedy")
        assert held_out[90] > 0.95, "nearly all right before the turn"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_language_model_goes_on_from_the_start_near_the_turn_and_learns_to_cheat(engine: str) -> None:
    with RunReader.open(RESOURCES / GAMEABLE.out) as reader:
        training = LanguageLearner(GAMEABLE.settings, history=(reader.step(reader.last),), make_policy=ENGINES[engine])
        steps = [next(training) for _ in range(25)]
    held_out = [step.measurements["accuracy_greedy"] for step in steps if "accuracy_greedy" in step.measurements]
    assert held_out[0] > 0.9 and held_out[-1] < 0.2
    assert min(float(step.rewards.mean()) for step in steps) > 1.0, "the reward does not fall"
