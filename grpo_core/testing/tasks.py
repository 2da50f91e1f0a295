"""Checks of a task of the tabular policy: it is an automaton that can be learned, explained and exported."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from grpo_core.bandit.tasks import END, TASKS, Task, reward_range, task
from grpo_core.config import BanditTask
from grpo_core.explain import Numbers, explain_from
from grpo_core.export.script import step_script
from grpo_core.learners import origin
from grpo_core.premises import right_share
from grpo_core.testing.scripts import compare, executed
from grpo_core.testing.updates import every_quantity, trained_with


def small(name: str) -> BanditTask:
    return BanditTask(landscape=name, actions=3, max_length=3, levels=(0.0, 0.5))


def is_an_automaton(name: str) -> None:
    """Check shapes and names, and that every path ends within the longest completion or is cut off there."""
    config = small(name)
    work = task(config)
    prompts, states, actions = work.start.shape
    assert prompts == len(work.prompts) == config.prompts
    assert work.next_state.shape == (states, actions) and len(work.vocabulary) == actions
    assert len(work.context_names) == prompts * states
    assert ((work.next_state == END) | ((work.next_state >= 0) & (work.next_state < states))).all()
    assert np.isfinite(work.start).all()
    assert work.longest == config.longest >= 1
    assert (work.parts is None) == (work.reward_names == ())


def pays_within_its_ends(name: str) -> None:
    """Check the rewards of random completions of every prompt against the declared lowest and highest reward."""
    config = small(name)
    work, low_high = task(config), reward_range(config)
    prompt, tokens, mask = completions(work, 400)
    paid = work.reward(prompt, tokens, mask)
    assert paid.shape == (1, len(prompt)) and np.isfinite(paid).all()
    low, high = low_high[prompt].T
    assert (low - 1e-12 <= paid).all() and (paid <= high + 1e-12).all()
    if work.parts is not None:
        assert work.parts(prompt, tokens, mask).shape == (*paid.shape, len(work.reward_names))
    if (right := TASKS[name].right) is not None:
        share = right(config, tokens[0], mask[0])
        assert share.shape == (len(prompt),) and ((share >= 0) & (share <= 1)).all()


def completions(work: Task, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the prompts (B,), tokens (1, B, T) and mask (1, B, T) of B random completions."""
    rng = np.random.default_rng(1)
    prompt = np.arange(count) % len(work.prompts)
    tokens = rng.integers(0, len(work.vocabulary), size=(1, count, work.longest))
    state, mask = np.zeros(count, int), np.zeros(tokens.shape, bool)
    for t in range(work.longest):
        mask[0, :, t] = state != END
        state = np.where(state == END, END, work.next_state[state, tokens[0, :, t]])
    return prompt, np.where(mask, tokens, 0), mask


def a_run_is_explained(name: str) -> None:
    """Check the explanation of every number of an update, and the exported script."""
    step = trained_with(2, task__landscape=name, task__max_length=3, task__actions=3, learner__group_size=4)
    numbers = Numbers(step)
    nodes = [explain_from(numbers, quantity) for quantity in every_quantity(step)]
    assert [node.title for node in nodes if not node.agrees] == []
    compare(step, executed(step_script(step, origin(step.settings))), 1e-9)
    share = right_share(step)
    assert share is None or share.shape == step.rewards.shape


CHECKS: dict[str, Callable[[str], None]] = {
    check.__name__: check for check in (is_an_automaton, pays_within_its_ends, a_run_is_explained)
}
"""All checks by name."""
