"""Settings as a script for TRL: it is Python, says what differs, and refuses what TRL cannot do."""

from __future__ import annotations

import ast
import contextlib
from typing import Any

import pytest

from grpo_core.config import PRESETS, folder_settings, language_settings
from grpo_core.errors import SettingsError
from grpo_core.hf.trl_script import LOSSES, config, script

BASE = folder_settings("/models/small")


def test_the_script_is_python_and_names_model_prompts_and_adapter() -> None:
    text = script(BASE)
    ast.parse(text)
    assert "MODEL, RUN, ROWS = '/models/small'" in text
    assert "What is 9 plus" in text
    assert "r=8, lora_alpha=16" in text
    assert "loss_type='grpo'" in text
    assert "top_k=0" in text


def test_the_reward_of_the_script_is_that_of_the_task() -> None:
    source = script(BASE.replace({"task.problem": "form", "task.form_weight": 0.5}))
    (function,) = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    space: dict[str, Any] = {}
    exec("import re, math\n" + ast.unparse(function), space)
    said = ["7 + 5 = 12.", "Answer: 12", "Answer: 13", "twelve"]
    paid = space["reward"]([[{"content": text}] for text in said], ["12"] * 4)
    assert paid == [1.0, 1.5, 0.5, 0.0]


@pytest.mark.parametrize(
    "changes",
    [{"objective.baseline": "leave_one_out"}, {"objective.kl": "k1", "objective.beta": 0.1},
     {"objective.kl": "k2", "objective.beta": 0.1}, {"objective.std": "population"},
     {"objective.surrogate": "gmpo"}, {"objective.level": "sequence_sum"}, {"learner.resample_dead": True},
     {"optimizer.kind": "sgd"}, {"objective.log_ratio_limit": 20.0}],
    ids=str,
)  # fmt: skip
def test_what_trl_cannot_do_is_refused_in_a_sentence(changes: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=r"TRL|AdamW"):
        script(BASE.replace(changes))


def test_the_shipped_model_is_no_folder() -> None:
    with pytest.raises(SettingsError, match="choose one"):
        script(language_settings())


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_is_written_or_refused(preset: str) -> None:
    settings, written = BASE.replace({}), ""
    with contextlib.suppress(SettingsError):
        settings = PRESETS[preset].applied_to(BASE)
        written = script(settings)
    ast.parse(written)
    if not written:
        return
    assert config(settings)["loss_type"] in LOSSES.values()
