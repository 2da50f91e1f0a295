"""A model from a folder is trained on published prompts from the command line, and all that was chosen is recorded."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from grpo_core.commands.cli import main
from grpo_core.learners import learner, origin
from grpo_core.lm.rewards import PromptSource
from grpo_core.runs.run_file import RunReader
from grpo_core.texts import question_text
from tests.core.trainers.hf.tiny import small

QUESTIONS = ["Janet’s ducks lay 16 eggs.\nHow many in 2 days?", "Is <b>5</b> > 3?", "Wie heißt [INST] sie?", "user\n?"]
CHOSEN = {
    "task.system": "Answer after ####.",
    "task.format": "final",
    "task.format_weight": 0.5,
    "task.words": "a, e, o",
    "task.words_weight": -0.25,
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    rows = [{"question": text, "answer": "48/2 = 24\n#### 2,125"} for text in QUESTIONS]
    path = tmp_path / "gsm8k.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows * 4) + "odd\n", encoding="utf-8")
    return path


def test_a_run_of_published_prompts_goes_on_bit_for_bit_with_its_system_prompt_and_rewards(
    file: Path, folders: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run.grpo"
    names = ("task.prompts", "learner.group_size", "task.max_tokens", "task.held_out", "task.accuracy_every")
    sizes = {name: small(folders["llama"]).get(name) for name in names}
    given = [f"--set={path}={value}" for path, value in {**sizes, **CHOSEN}.items()]
    model = ["--model", str(folders["llama"]), "--prompts", str(file)]
    assert main(["train", *model, *given, "--steps", "3", "--out", str(out)]) == 0
    assert "1 of 17 prompts cannot be used. Line 17 of gsm8k.jsonl is not JSON" in capsys.readouterr().err
    with RunReader.open(out) as reader:
        settings, third = reader.meta.settings, reader.step(3)
        again = next(learner(settings, resume=reader.step(2), earlier=reader.step))
    assert {path: settings.get(path) for path in CHOSEN} == CHOSEN
    assert (settings.language.problem, settings.language.checker) == ("questions", "final")
    assert np.array_equal(again.tokens, third.tokens) and np.array_equal(again.logp, third.logp)
    assert third.reward_parts is not None and third.part_names is not None
    weights = dict(zip(settings.language.part_names, settings.language.part_weights, strict=True))
    paid = third.reward_parts @ [weights[name] for name in third.part_names]
    assert third.rewards == pytest.approx(paid) and third.part_names[-2:] == ("format", "words")
    assert np.any(third.reward_parts[:, -1] > 0)


def test_the_prompt_of_a_recorded_group_is_found_in_its_file(file: Path, folders: dict[str, Path]) -> None:
    own = {"task__problem": "questions", "task__file": str(file), "task__system": "Think.", "task__prompts": 4}
    settings = small(folders["llama"], **own)
    step, start, source = next(learner(settings)), origin(settings), PromptSource(settings.language, None)
    found = [source.prompt(question_text(step, group, start)).text for group in range(4)]
    assert sorted(found) == sorted(QUESTIONS)


def test_prompts_need_a_language_model(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--prompts", str(file), "--out", str(tmp_path / "run.grpo")]) == 2
    assert "--prompts is for a language model" in capsys.readouterr().err
