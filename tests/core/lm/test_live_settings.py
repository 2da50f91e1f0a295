"""A change between two updates takes effect at the next one; settings fixed at the start cannot be changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grpo_core.config import Settings, language_settings
from grpo_core.config.settings import flat, is_live
from grpo_core.errors import GrpoError, SettingsError
from grpo_core.lm.rewards import PromptSource
from grpo_core.lm.vocabulary import STOP
from grpo_core.metrics import metrics
from grpo_core.record import Step
from tests.core.lm.test_learner import run, same, small

STRUCTURAL: dict[str, Any] = {
    "seed": 8,
    "task.problem": "gameable",
    "task.max_tokens": 9,
    "task.file": "mine.csv",
    "task.checker": "regex",
    "task.held_out": 9,
    "model.checkpoint": "untrained",
    "model.layers": 3,
    "model.width": 32,
    "model.heads": 2,
    "model.context": 80,
    "model.device": "cuda",
    "model.threads": 2,
    "task.form": "^x$",
    "task.system": "Think.",
    "task.thinking": "off",
    "model.digest": "0123",
    "model.adapter_rank": 4,
    "model.adapter_alpha": 8.0,
}


def changed(path: str, value: Any, **start: Any) -> tuple[Step, Step]:
    """Return the second update without and with one setting changed before it."""
    pair = []
    for wanted in (None, value):
        going = run(small(model__snapshot_every=1, **start))
        next(going)
        if wanted is not None:
            going.settings = going.settings.replace({path: wanted})
        pair.append(next(going))
    assert pair[1].settings.get(path) == value
    return pair[0], pair[1]


def test_a_learning_rate_of_nothing_moves_nothing() -> None:
    before, after = changed("optimizer.learning_rate", 0.0)
    assert np.array_equal(after.tokens, before.tokens)
    assert np.array_equal(after.logp[0], after.logp[-1]) and not np.array_equal(before.logp[0], before.logp[-1])


def test_the_number_of_passes_is_that_of_the_settings() -> None:
    before, after = changed("learner.mu", 3)
    assert (before.passes, after.passes) == (1, 3)
    assert np.array_equal(after.tokens, before.tokens)


def test_a_temperature_acts_on_sampling_and_on_scoring() -> None:
    before, after = changed("learner.temperature", 3.0)
    assert after.sampling_logp is not None
    assert np.abs(after.sampling_logp - after.old_logp)[after.mask].max() < 1e-4
    assert after.dist_logp is not None and before.dist_logp is not None
    entropy = [float(-(np.exp(d) * d).sum(axis=-1).mean()) for d in (before.dist_logp[0], after.dist_logp[0])]
    assert entropy[1] > entropy[0] + 0.2


def test_another_difficulty_is_drawn_and_the_same_prompts_are_watched() -> None:
    before, after = changed("task.difficulty", "hopeless", task__difficulty="easy")
    assert after.rewards.sum() == 0 < before.rewards.sum()
    assert before.watched_tokens is not None and after.watched_tokens is not None
    assert np.array_equal(before.watched_tokens, after.watched_tokens)
    assert (before.watched_tokens == STOP).any()


def test_what_an_answer_pays_is_that_of_the_settings() -> None:
    before, after = changed("task.answer_weight", 3.0, task__difficulty="easy")
    assert np.array_equal(after.rewards, 3 * before.rewards)


def test_a_reference_that_is_not_watched_any_more_is_left_out() -> None:
    _, after = changed("model.watch_reference", False, objective__beta=0.0)
    assert after.ref_logp is None and after.ref_dist_logp is None and np.isnan(metrics(after)["kl"])
    _, after = changed("model.watch_reference", False)
    assert after.ref_logp is not None, "a loss with β above 0 needs it"


def test_a_batch_is_as_large_as_the_settings_say() -> None:
    going = run(small())
    next(going)
    going.settings = going.settings.replace({"learner.group_size": 3, "task.prompts": 4})
    assert next(going).tokens.shape[0] == 12
    with pytest.raises(SettingsError, match="another kind of policy"):
        going.settings = Settings()


def test_weights_are_kept_as_often_as_asked_for() -> None:
    going = run(small(model__snapshot_every=2))
    assert [bool(next(going).resume) for _ in range(4)] == [False, True, False, True]


def test_accuracy_is_measured_as_often_as_asked_for() -> None:
    going = run(small(task__accuracy_every=2))
    assert ["accuracy_sampled" in next(going).measurements for _ in range(5)] == [True, False, True, False, True]


@pytest.mark.quick_cases("seed", "task.problem", "model.width", "model.threads", "task.form")
@pytest.mark.parametrize("path", STRUCTURAL)
def test_what_a_run_was_started_with_is_refused_and_the_run_goes_on(path: str) -> None:
    going, other = run(small()), run(small())
    next(going)
    next(other)
    with pytest.raises(SettingsError, match=rf"^{path} cannot be .* start a new run to change it"):
        going.settings = going.settings.replace({path: STRUCTURAL[path]})
    assert same(next(going), next(other))


def test_every_structural_setting_is_tried_above() -> None:
    structural = {path for path in flat(language_settings()) if not is_live(path)}
    together = {"model.precision", "model.folder"}  # bfloat16 with CUDA, a folder with a task in words
    assert structural - together == STRUCTURAL.keys()


def test_a_prompt_file_that_cannot_be_read_any_more_leaves_the_settings_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("prompt,answer\n1+1=,2\n", encoding="utf-8")
    start: Settings = small(task__problem="own", task__file=str(path))
    going = run(start)
    next(going)
    path.unlink()
    with pytest.raises(GrpoError, match="cannot be read"):
        going.settings = start.replace({"task.prompts": 3})
    assert going.settings == start
    assert next(going).step == 2


def test_the_watched_prompts_cost_a_run_none_of_its_random_numbers() -> None:
    one, other = run(small(task__held_out=1)), run(small(task__held_out=8))
    first, second = next(one), next(other)
    assert np.array_equal(first.tokens, second.tokens)
    assert len(PromptSource(small(task__held_out=1).language, 64).watched) == 1
