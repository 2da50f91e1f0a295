"""Settings exported as a script for TRL: valid Python that states the differences and refuses what TRL cannot do."""

from __future__ import annotations

import ast
import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grpo_core.config import PRESETS, Settings, folder_settings, language_settings
from grpo_core.errors import SettingsError
from grpo_core.lm import word_tasks as words
from grpo_core.trainers.hf.folder_policy import FolderPolicy
from grpo_core.trainers.hf.trl_script import LOSSES, config, script
from tests.core.trainers.hf.tiny import small
from tests.core.trainers.hf.tiny_gguf import saved_gguf

ENDINGS = {
    "llama": ["q_proj", "k_proj", "v_proj", "o_proj"],
    "qwen2": ["q_proj", "k_proj", "v_proj", "o_proj"],
    "gpt2": ["c_attn", "attn.c_proj"],
}
"""Kind of model -> names of its attention layers."""


@pytest.fixture(scope="module")
def base(folders: dict[str, Path]) -> Settings:
    """The default settings for a tiny Llama."""
    return folder_settings(str(folders["llama"]))


def test_the_script_is_python_and_names_model_prompts_and_adapter(base: Settings) -> None:
    text = script(base)
    ast.parse(text)
    assert f"MODEL, RUN, ROWS = {base.model.folder!r}" in text
    assert "What is 9 plus" in text
    assert "r=8, lora_alpha=16" in text
    assert "loss_type='grpo'" in text
    assert "top_k=0" in text


def prompts_of(text: str) -> list[tuple[str, str, str]]:
    """Return the questions, answers and system prompts in a script."""
    named = [node for node in ast.parse(text).body if isinstance(node, ast.Assign)]
    (found,) = [node.value for node in named if ast.unparse(node.targets[0]) == "PROMPTS"]
    prompts: list[tuple[str, str, str]] = ast.literal_eval(found)
    return prompts


def test_every_prompt_is_written_once_and_no_held_out_one(base: Settings) -> None:
    text = script(base)
    prompts = prompts_of(text)
    kept_aside = {prompt.text for prompt in words.held_out("sums", np.random.default_rng(0), words.HELD_OUT)}
    assert len(prompts) == len(set(prompts)) == words.LARGEST**2 - words.HELD_OUT
    assert not {question for question, *_ in prompts} & kept_aside
    assert len(text.splitlines()) < 200


def test_own_prompts_are_all_written_whatever_they_hold(base: Settings, tmp_path: Path) -> None:
    rows = [(f"{n}: “quoted”, 'so' \\ and {{braces}}", f"a{n}", "Be brief.") for n in range(10)]
    lines = [json.dumps({"prompt": question, "answer": answer}) for question, answer, _ in rows]
    (tmp_path / "own.jsonl").write_text("\n".join(lines), encoding="utf-8")
    own = {"task.problem": "questions", "task.file": str(tmp_path / "own.jsonl"), "task.checker": "exact"}
    own |= {"task.system": "Be brief.", "task.thinking": "off"}
    text = script(base.replace(own))
    assert prompts_of(text) == rows
    assert "chat_template_kwargs={'enable_thinking': False, 'thinking': False}" in text
    with pytest.raises(SettingsError, match="does not compare answers in this way"):
        script(base.replace(own | {"task.checker": "final"}))


@pytest.mark.parametrize("kind", ENDINGS)
def test_the_adapter_of_the_script_is_on_the_layers_that_ours_is_on(kind: str, folders: dict[str, Path]) -> None:
    settings = small(folders[kind])
    tree = ast.parse(script(settings))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "LoraConfig"]
    (targets,) = [ast.literal_eval(word.value) for word in calls[0].keywords if word.arg == "target_modules"]
    assert targets == ENDINGS[kind]
    ours = FolderPolicy(settings).model.peft_config["default"].target_modules
    assert set(ours) == set(targets)


def test_a_gguf_file_is_refused_since_trl_trains_from_a_folder(folders: dict[str, Path], tmp_path: Path) -> None:
    path = saved_gguf(folders["llama"], tmp_path / "model.gguf")
    with pytest.raises(SettingsError, match="instead of a GGUF file"):
        script(folder_settings(str(path)))


def test_the_reward_of_the_script_is_that_of_the_task(base: Settings) -> None:
    source = script(base.replace({"task.problem": "form", "task.form_weight": 0.5}))
    (function,) = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    space: dict[str, Any] = {}
    exec("import re, math\n" + ast.unparse(function), space)
    said = ["7 + 5 = 12.", "Answer: 12", "Answer: 13", "twelve", "not 1,012"]
    paid = space["reward"]([[{"content": text}] for text in said], ["12"] * 5)
    assert paid == [1.0, 1.5, 0.5, 0.0, 0.0]


@pytest.mark.parametrize(
    "changes",
    [
        {"objective.baseline": "leave_one_out"},
        {"objective.kl": "k1", "objective.beta": 0.1},
        {"objective.kl": "k2", "objective.beta": 0.1},
        {"objective.std": "population"},
        {"objective.surrogate": "gmpo"},
        {"objective.level": "sequence_sum"},
        {"learner.resample_dead": True},
        {"optimizer.kind": "sgd"},
        {"objective.log_ratio_limit": 20.0},
        {"task.brevity_weight": 0.1},
        {"task.format_weight": 0.1},
        {"task.words": "so", "task.words_weight": -0.1},
    ],
    ids=str,
)
def test_what_trl_cannot_do_is_refused_in_a_sentence(changes: dict[str, Any], base: Settings) -> None:
    with pytest.raises(SettingsError, match=r"TRL|AdamW"):
        script(base.replace(changes))


def test_the_shipped_model_is_no_folder() -> None:
    with pytest.raises(SettingsError, match="choose one"):
        script(language_settings())


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_is_written_or_refused(preset: str, base: Settings) -> None:
    settings, written = base.replace({}), ""
    with contextlib.suppress(SettingsError):
        settings = PRESETS[preset].applied_to(base)
        written = script(settings)
    ast.parse(written)
    if not written:
        return
    assert config(settings)["loss_type"] in LOSSES.values()
