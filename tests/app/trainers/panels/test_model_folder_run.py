"""A run of a model from a folder in the panels: questions without their template, words of its task, ways to export."""

from __future__ import annotations

import dataclasses
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtWidgets import QFileDialog

from app.panel_registry import EVOLUTION, SCORE_YOUR_OWN, TOKEN_INSPECTOR, WHAT_IF
from app.panels.evolution.head import IN_WORDS
from app.settings.files import exists
from app.trainers.panel_rows import COMPLETIONS
from grpo_core.explain import Quantity, explain
from grpo_core.learners import learner
from grpo_core.metrics import metrics
from grpo_core.questions import FirstAnswers, FixedAnswers
from grpo_core.runs.run_file import RunReader, RunWriter
from grpo_core.update_time import UpdateTime, UpdateTimeQuestion
from tests.app.conftest import Driver
from tests.app.panels.conftest import Front

NEEDED = ("transformers", "peft")
pytestmark = [
    pytest.mark.one_window,
    pytest.mark.skipif(any(find_spec(name) is None for name in NEEDED), reason="not installed: transformers or peft"),
]

ASKED = "Reply with the number only."


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Rank of the adapter -> a run of two updates; rank 0 trains every weight."""
    from tests.core.trainers.hf.tiny import saved, small

    base = tmp_path_factory.mktemp("folder_runs")
    made = dict[int, Path]()
    for rank in (8, 0):
        folder = saved(base / f"model{rank}", "llama") if not made else base / "model8"
        settings = small(folder, model__adapter_rank=rank, task__form_weight=0.0)
        made[rank] = base / f"{rank}.grpo"
        training = learner(settings)
        with RunWriter.create(made[rank], settings, title="Folder") as writer:
            writer.extend((step, metrics(step)) for step in (next(training), next(training)))
            writer.commit()
    return made


def opened(driver: Driver, path: Path) -> None:
    driver.program.runs.open_path(path)  # which has the model's folder looked at as well
    driver.qtbot.waitUntil(lambda: getattr(driver.program.workspace.run, "path", None) == path)
    driver.program.window.show_layout("Language model")
    driver.program.workspace.move_to(2)
    driver.settle()


@pytest.fixture
def adapted(driver: Driver, recorded: dict[int, Path]) -> Driver:
    opened(driver, recorded[8])
    return driver


def test_evolution_speaks_of_sums_and_offers_tasks_in_words(adapted: Driver, front: Front) -> None:
    panel = front(EVOLUTION)
    adapted.settle()
    assert "answer every time" in panel.watch.text()
    visible = [button for button in panel.chips.buttons if not button.isHidden()]
    assert [button.text() for button in visible] == [chip.text for chip in IN_WORDS]
    assert [button.isChecked() for button in visible] == [True, False, False]
    told = panel.rows.accessibleDescription()
    assert ASKED in told and "<|im_end|>" not in told
    assert "Greedy answers before it:" in panel.note.text() and "of 2 right" in panel.note.text()


def test_evolution_shows_what_the_reward_sees_and_greedy_answers_beside_it(
    driver: Driver, recorded: dict[int, Path], front: Front, tmp_path: Path
) -> None:
    with RunReader.open(recorded[8]) as reader:
        settings, steps = reader.meta.settings, [reader.step(1), reader.step(2)]
    with RunWriter.create(tmp_path / "right.grpo", settings) as writer:
        for step in steps:
            assert step.reward_parts is not None
            parts = step.reward_parts.copy()
            parts[: 2 * step.step, 0] = 1.0  # a tiny random model is never right by itself
            judged = dataclasses.replace(step, reward_parts=parts, rewards=step.rewards + parts[:, 0])
            writer.append(judged, metrics(judged))
    opened(driver, tmp_path / "right.grpo")
    panel = front(EVOLUTION)
    driver.settle()
    assert panel.dial.lines[0] == "sampled: 4 of 8"
    assert panel.dial.lines[1].startswith("greedy, held out: ")
    assert panel.dial.words.startswith("50% of the update's sampled completions are right, 25% at the first")
    assert "Update 2 sampled 4 of 8 right. Greedy answers before it: " in panel.note.text()
    panel.dial.explain_current()
    assert driver.program.workspace.view.quantity == Quantity("accuracy"), "the number on the dial"


def test_a_sum_that_was_drawn_twice_has_one_row(adapted: Driver, front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapted.program.run_manager, "load_model", lambda run: None)
    shown = adapted.program.workspace.run
    assert shown is not None
    adapted.program.runs.new_run_of(shown.origin.settings.replace({"task.held_out": 16}))
    run, panel = adapted.program.workspace.run, front(EVOLUTION)
    assert run is not None and run is not shown
    adapted.settle()
    sums = set(run.origin.watched)
    assert len(sums) < len(run.origin.watched) == 8, "there are few sums that are kept aside"
    run.first_answers = tuple((run.origin.vocabulary.index(str(place)),) for place in range(8))
    adapted.program.workspace.request_frame()
    adapted.settle()
    texts = panel.rows.accessibleDescription()
    assert texts.count(ASKED) == len(sums)
    for question in sums:
        assert f"{question} {run.origin.watched.index(question)}" in texts


def test_what_a_model_says_before_its_first_update_stands_under_evolution(
    adapted: Driver, front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[object]()
    monkeypatch.setattr(adapted.program.run_manager, "load_model", lambda run: None)
    shown = adapted.program.workspace.run
    assert shown is not None
    adapted.program.runs.new_run_of(shown.origin.settings)
    run, panel, controller = adapted.program.workspace.run, front(EVOLUTION), adapted.program.controller
    assert run is not None
    monkeypatch.setattr(controller, "ask", asked.append)
    monkeypatch.setattr(controller, "run_id", run.id)
    assert "parameters" in panel.note.text() and " s here" not in panel.note.text()
    number = tuple(run.origin.vocabulary.index(digit) for digit in "14")
    controller.answered.emit(FirstAnswers(run=run.id), FixedAnswers(tokens=(number,) * len(run.origin.watched)))
    adapted.settle()
    assert f"{run.origin.watched[0]} 14" in panel.rows.accessibleDescription()
    assert asked == [UpdateTimeQuestion(run=run.id)], "asked once the answers are there"
    time = UpdateTime(sampling=4.1, learning=9.9, device="cpu")
    controller.answered.emit(asked[0], time)
    adapted.settle()
    assert panel.note.text().startswith(time.sentence) and "parameters" in panel.note.text()
    assert time.sentence in panel.summary(adapted.program.workspace.view)


def test_how_an_answer_turned_is_told_in_quotation_marks(
    driver: Driver, front: Front, recorded: dict[int, Path], tmp_path: Path
) -> None:
    with RunReader.open(recorded[8]) as reader:
        steps, origin = [reader.step(number) for number in (1, 2)], reader.origin
    vocabulary, path = {text: number for number, text in enumerate(origin.vocabulary)}, tmp_path / "turned.grpo"
    with RunWriter.create(path, origin.settings, origin=origin, title="Turned") as writer:
        for step, answer in zip(steps, ("5 + 9 = 13", "5 + 9 = 14"), strict=True):
            row = np.array([vocabulary[letter] for letter in answer] + [1], dtype=np.int32)
            watched = np.tile(row, (len(origin.watched), 1))
            writer.append(dataclasses.replace(step, watched_tokens=watched), metrics(step))
    opened(driver, path)
    panel = front(EVOLUTION)
    driver.settle()
    assert panel.story.text() == (
        "“What is 5 plus 9? Reply…” was answered “5 + 9 = 13”; since update 2 it is “5 + 9 = 14”, which is right."
    )


def test_the_question_stands_in_the_boxes_on_one_line(adapted: Driver, front: Front) -> None:
    for box in (front(TOKEN_INSPECTOR).choices.prompt, front(SCORE_YOUR_OWN).prompt):
        adapted.settle()
        texts = [box.itemText(place) for place in range(box.count())]
        assert all(text.endswith(ASKED) and "What is" in text for text in texts)
        assert not any("im_start" in text or "\n" in text for text in texts)


def test_each_place_shows_the_likeliest_tokens_as_such(adapted: Driver, front: Front) -> None:
    panel = front(TOKEN_INSPECTOR)
    adapted.program.workspace.select(row=0, token=0)
    adapted.settle()
    spoken = panel.detail.accessibleDescription()
    assert "The 5 likeliest, not all" in spoken and spoken.count(" before, ") == 5
    quantities = [quantity for quantity in panel.detail.quantities if quantity is not None]
    assert [quantity.name for quantity in quantities[:5]] == ["alternative"] * 5
    step = adapted.program.workspace.view.step.step
    assert step is not None and all(explain(step, quantity).agrees for quantity in quantities)


def test_completions_show_the_question_without_its_template(adapted: Driver, front: Front) -> None:
    panel = front(COMPLETIONS)
    adapted.settle()
    prompt, _ = panel.texts(0)
    assert prompt is not None and prompt.startswith("What is") and prompt.endswith(ASKED)


def test_any_text_can_be_typed_to_a_model_with_a_tokenizer(adapted: Driver, front: Front) -> None:
    panel = front(SCORE_YOUR_OWN)
    adapted.settle()
    panel.field.setText("It is twelve!")
    assert panel.button.isEnabled()
    assert panel.status.text() == ""


def test_what_cannot_be_asked_of_a_model_whose_every_weight_is_trained_says_why(
    driver: Driver, front: Front, recorded: dict[int, Path]
) -> None:
    opened(driver, recorded[0])
    score, what_if = front(SCORE_YOUR_OWN), front(WHAT_IF)
    driver.settle()
    assert "A run that trains an adapter answers here." in score.empty.text()
    assert not what_if.header.ask.isEnabled()
    assert "can be asked" in what_if.header.ask.accessibleDescription()


def test_a_run_of_every_weight_with_a_folder_for_snapshots_can_be_asked(
    driver: Driver, front: Front, recorded: dict[int, Path], tmp_path: Path
) -> None:
    with RunReader.open(recorded[0]) as reader:
        steps, origin = [reader.step(number) for number in (1, 2)], reader.origin
    kept, path = origin.settings.replace({"model.snapshot_folder": str(tmp_path)}), tmp_path / "kept.grpo"
    with RunWriter.create(path, kept, origin=dataclasses.replace(origin, settings=kept), title="Kept") as writer:
        writer.extend((dataclasses.replace(step, settings=kept), metrics(step)) for step in steps)
    opened(driver, path)
    score, what_if = front(SCORE_YOUR_OWN), front(WHAT_IF)
    driver.settle()
    assert not score.empty.isVisible()
    assert what_if.header.ask.isEnabled()


def test_the_settings_leave_as_a_script_for_trl_or_it_is_said_what_trl_cannot(adapted: Driver, tmp_path: Path) -> None:
    program = adapted.program
    action = program.actions["export_trl"]
    assert action.isEnabled()
    program.part("trainers").model_folders.write_trl_script(tmp_path / "train.py")
    compile((tmp_path / "train.py").read_text("utf-8"), "train.py", "exec")
    assert "def record" in (tmp_path / "trl_recorder.py").read_text("utf-8")
    assert "runs/trl" in adapted.messages[-1]
    program.workspace.editing.edit({"objective.baseline": "leave_one_out"}, "Leave one out")
    adapted.settle()
    assert not action.isEnabled()
    program.part("trainers").model_folders.write_trl_script(tmp_path / "other.py")
    assert "does not support this" in adapted.messages[-1] and not exists(tmp_path / "other.py")


def test_a_bandit_is_no_run_for_trl(driver: Driver) -> None:
    assert not driver.program.actions["export_trl"].isEnabled()


@pytest.mark.long
def test_an_adapter_is_exported_and_a_checkpoint_saved_and_taken_up_in_the_window(
    adapted: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = adapted.program
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(tmp_path))
    program.workspace.move_to(1)
    for command, name in (("export_adapter", "Folder adapter"), ("save_checkpoint", "Folder checkpoint")):
        program.actions[command].trigger()
        adapted.qtbot.waitUntil(lambda: not program.exporter.busy, timeout=60_000)
        assert (tmp_path / name).is_dir(), adapted.messages
        assert any("after update 1" in message for message in adapted.messages)
    assert "for 1 update with" in (tmp_path / "Folder adapter" / "README.md").read_text(encoding="utf-8")
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(tmp_path / "Folder checkpoint"))
    left = program.workspace.run
    program.part("trainers").ask_open_folder()
    adapted.qtbot.waitUntil(lambda: program.workspace.run is not left)
    adapted.settle()
    run = program.workspace.run
    assert run is not None and run.head == 1 and run.path.parent == program.paths.runs
    adapted.run(1)
    assert run.head == 2
    was, now = (found.series["reward_mean"].values.tolist() for found in (left, run) if found is not None)
    assert now == was, "the same update again"


def test_what_has_no_model_of_its_own_exports_none_and_says_why(driver: Driver) -> None:
    driver.settle()
    for command in ("export_adapter", "export_model", "save_checkpoint"):
        action = driver.program.actions[command]
        assert not action.isEnabled() and "a model from a folder" in action.toolTip()
