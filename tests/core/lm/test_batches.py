"""Creation of a batch: random numbers, prompts, completions, rewards, and resampled dead groups."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from grpo_core.advantages import equal_rewards
from grpo_core.config import Settings
from grpo_core.lm import rewards as rules
from grpo_core.lm.batches import ATTEMPTS, draw, measured, stream
from grpo_core.lm.checkpoint import started
from grpo_core.lm.model import Transformer
from grpo_core.lm.problems import Prompt
from grpo_core.lm.rewards import PromptSource
from grpo_core.lm.sampler import sample
from grpo_core.lm.vocabulary import decode
from grpo_core.record import Step
from tests.core.lm.models import CharacterSampling, requested, tokens_of
from tests.core.lm.test_learner import small


def never(done: int, total: int) -> None:
    """Do nothing when polled."""


@pytest.fixture(scope="module")
def model() -> Transformer:
    return started(small().model, 0, torch.device("cpu"))


def batch(settings: Settings, model: Transformer, step: int = 1) -> Step:
    return draw(
        settings, CharacterSampling(model), PromptSource(settings.language, settings.model.context), step, never
    )


def texts(drawn: Step) -> list[str]:
    return [decode(row[real]) for row, real in zip(drawn.tokens, drawn.mask, strict=True)]


def prompts(drawn: Step) -> list[Prompt]:
    """Return the prompts that were asked, read from their tokens."""
    assert drawn.prompt_tokens is not None
    source = PromptSource(drawn.settings.language, drawn.settings.model.context)
    return [source.prompt(decode([*asked.tolist(), -1])) for asked in drawn.prompt_tokens]


def test_random_numbers_follow_from_seed_update_and_use_and_from_nothing_else() -> None:
    keys = [(seed, step, use) for seed in (0, 1, 2**63 - 1) for step in (0, 1, 10**6) for use in (0, 1, 21, 63)]
    numbers = {key: tuple(stream(*key).random(4000)) for key in keys}
    assert all(tuple(stream(*key).random(4000)) == found for key, found in numbers.items())
    every = np.array(list(numbers.values()))
    assert len(np.unique(every)) == every.size, "no two uses share a number"


def test_rewards_are_those_of_the_texts_that_were_drawn(model: Transformer) -> None:
    settings = small(task__problem="gameable", task__prompts=4, task__working_weight=0.5)
    found = batch(settings, model)
    for row, text in enumerate(texts(found)):
        assert found.reward_parts is not None
        assert found.reward_parts[row].tolist() == list(rules.parts(settings.language, prompts(found)[row // 4], text))
        assert found.rewards[row] == pytest.approx(found.reward_parts[row, :3] @ [1.0, 0.5, 0.15])


def test_a_batch_is_no_wider_than_its_longest_completion(model: Transformer) -> None:
    found = batch(small(task__difficulty="easy", task__max_tokens=40), model)
    assert found.tokens.shape == found.mask.shape == found.old_logp.shape
    assert found.tokens.shape[1] == found.mask.sum(axis=-1).max() < 40


def test_the_watched_completions_are_the_likeliest_ones(model: Transformer) -> None:
    settings = small()
    source = PromptSource(settings.language, settings.model.context)
    asked = tokens_of(prompt.text for prompt in source.watched)
    done = sample(model, requested(asked, np.zeros((len(asked), 14)), likeliest=np.ones(len(asked), bool)))
    found = batch(settings, model).watched_tokens
    assert found is not None
    assert np.array_equal(found, np.where(done.mask, done.tokens, -1))


def test_dead_groups_are_drawn_again_and_the_others_stay(model: Transformer) -> None:
    plain = small(task__prompts=6, task__difficulty="hard")
    again = plain.replace({"learner.resample_dead": True})
    before, after = batch(plain, model), batch(again, model)
    dead = equal_rewards(before.rewards.reshape(6, 4))
    assert dead.any() and not dead.all()
    assert not equal_rewards(after.rewards.reshape(6, 4)).any()
    assert after.measurements["resampled"] >= dead.sum()
    for group in range(6):
        rows = slice(group * 4, group * 4 + 4)
        same = prompts(before)[group] == prompts(after)[group] and texts(before)[rows] == texts(after)[rows]
        assert same == (not dead[group])
    assert after.reward_parts is not None
    for row, text in enumerate(texts(after)):
        assert after.reward_parts[row].tolist() == list(rules.parts(again.language, prompts(after)[row // 4], text))


def test_completions_keep_their_number_and_those_drawn_again_have_another(model: Transformer) -> None:
    settings = small(task__prompts=6, task__difficulty="hard", learner__resample_dead=True)
    numbers = batch(settings, model).row_id
    assert len(set(numbers.tolist())) == 24
    assert (numbers % 24 == np.arange(24)).all()
    assert (numbers >= 24).any() and (numbers < 24).any()


def test_groups_that_stay_dead_are_given_up_after_ten_attempts(model: Transformer) -> None:
    found = batch(small(task__difficulty="hopeless", learner__resample_dead=True), model)
    assert found.measurements["resampled"] == ATTEMPTS * 2
    assert equal_rewards(found.rewards.reshape(2, 4)).all()


def test_accuracy_is_the_share_of_right_answers_to_the_held_out_prompts(model: Transformer) -> None:
    settings = small(task__held_out=64)
    source = PromptSource(settings.language, settings.model.context)
    one, other = (measured(settings, CharacterSampling(model), source, step, never) for step in (1, 2))
    assert one["accuracy_greedy"] == other["accuracy_greedy"], "the likeliest tokens are no matter of chance"
    assert one["accuracy_sampled"] != other["accuracy_sampled"]
    right = 0
    for prompt in source.held_out:
        done = sample(model, requested(tokens_of([prompt.text]), np.zeros((1, 14)), likeliest=np.ones(1, bool)))
        right += decode(done.tokens[0]).rpartition("=")[2] == prompt.answer
    assert one["accuracy_greedy"] == pytest.approx(right / 64)


def test_own_prompts_are_asked_and_checked_as_the_settings_say(model: Transformer, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("prompt,answer\n2+3*4=,=14$\n3*3=,^9$\n", encoding="utf-8")
    own = {"task__problem": "own", "task__file": str(path), "task__checker": "regex"}
    found = batch(small(**own, learner__group_size=8), model)
    assert {prompt.text for prompt in prompts(found)} == {"2+3*4=", "3*3="}
    for row, text in enumerate(texts(found)):
        wanted = text.endswith("=14") if prompts(found)[row // 8].text == "2+3*4=" else text == "9"
        assert found.rewards[row] == wanted
    assert found.rewards.sum() > 0
