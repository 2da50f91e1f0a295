"""Prompts in a model's chat template, which is a program written by somebody else, and prompts from published files."""

from __future__ import annotations

import json
import sys
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grpo_core.commands.cli import main
from grpo_core.config import LanguageTask
from grpo_core.errors import GrpoError, SettingsError
from grpo_core.learners import learner, origin
from grpo_core.lm.problems import Prompt
from grpo_core.lm.rewards import PromptSource
from grpo_core.runs.run_file import RunReader
from grpo_core.texts import question_text
from grpo_core.trainers.hf import chat as chat_module
from grpo_core.trainers.hf.chat import Chat, limited
from grpo_core.trainers.hf.loading import libraries
from tests.core.trainers.hf.tiny import TEMPLATE, small

QUESTION = Prompt("What is 7 plus 5?", "12")
LOOPS = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
NUMBERS = "{{ range(99999)|map('string')|map('length')|sum }}"


def chat(folder: Path, template: str, **task: Any) -> Chat:
    transformers, _ = libraries()
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    tokenizer.chat_template = template
    return Chat(tokenizer, (0, 1), 256, LanguageTask(**task))


@pytest.fixture
def ticking(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that advances by one second at each reading, so that a busy machine does not affect the result."""
    ticks = count()
    monkeypatch.setattr(chat_module, "limited", partial(limited, 100_000.0, lambda: float(next(ticks))))


@pytest.mark.parametrize("template", [LOOPS, NUMBERS, f"{{% macro m() %}}{LOOPS}{{% endmacro %}}{{{{ m() }}}}"])
@pytest.mark.usefixtures("ticking")
def test_a_template_that_does_not_end_is_refused(template: str, folders: dict[str, Path]) -> None:
    before = sys.gettrace()
    with pytest.raises(GrpoError, match="not be filled in within 2 seconds"):
        chat(folders["llama"], template).encoded([QUESTION])
    assert sys.gettrace() is before


def test_a_template_that_makes_a_book_of_a_prompt_is_refused(folders: dict[str, Path]) -> None:
    with pytest.raises(GrpoError, match=r"turns a prompt into 2,000,000 characters; at most 1,000,000"):
        chat(folders["llama"], "{{ 'x' * 2000000 }}").encoded([QUESTION])


def test_what_a_template_itself_refuses_is_passed_on(folders: dict[str, Path]) -> None:
    with pytest.raises(GrpoError, match="no user may speak"):
        chat(folders["llama"], "{{ raise_exception('no user may speak') }}").encoded([QUESTION])


def test_a_template_that_works_is_filled_in_with_time_to_spare(folders: dict[str, Path]) -> None:
    (row,) = chat(folders["llama"], TEMPLATE).encoded([QUESTION])
    assert (row >= 0).sum() > len(QUESTION.text)


THINKING = (
    TEMPLATE + "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{%- endif %}"
    "{%- if thinking is defined and thinking %}Think.{%- endif %}"
)


def rendered(folder: Path, template: str, prompt: Prompt, **task: Any) -> str:
    """Return the text of a prompt with its template."""
    made = chat(folder, template, **task)
    (row,) = made.encoded([prompt])
    return made.text(row[row >= 0])


@pytest.mark.parametrize(("thinking", "end"), [("default", "assistant\n"), ("on", "Think."), ("off", "</think>")])
def test_a_template_thinks_or_not_as_it_is_told(thinking: str, end: str, folders: dict[str, Path]) -> None:
    assert rendered(folders["llama"], THINKING, QUESTION, thinking=thinking).endswith(end)


def test_a_template_without_a_switch_for_thinking_is_refused(folders: dict[str, Path]) -> None:
    with pytest.raises(SettingsError, match="no switch for a thinking mode") as refused:
        chat(folders["llama"], TEMPLATE + "{# thinking #}", thinking="off")
    assert refused.value.field == "task.thinking"


@pytest.mark.parametrize(("own", "of_file", "used"), [("", "", ""), ("A.", "B.", "A."), ("", "B.", "B.")])
def test_the_system_prompt_of_the_settings_goes_before_that_of_the_file(
    own: str, of_file: str, used: str, folders: dict[str, Path]
) -> None:
    text = rendered(folders["llama"], TEMPLATE, Prompt("7?", "7", of_file), system=own)
    before, _, after = text.partition("user\n7?")
    assert after and used in before and ("system" in before) == bool(used)


def test_a_system_prompt_needs_a_template(folders: dict[str, Path]) -> None:
    with pytest.raises(SettingsError, match="no chat template"):
        chat(folders["llama"], "", system="A.")
    with pytest.raises(GrpoError, match=r"“7\?”: the model has no chat template"):
        chat(folders["llama"], "").encoded([Prompt("7?", "7", "B.")])


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
