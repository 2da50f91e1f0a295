"""Sentences about what is right, what is paid most, and who sampled, checked from their words and the raw arrays alone.

No check of a sentence imports what makes these sentences, or the facts that they ask for.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from grpo_core.config import Settings
from grpo_core.config.settings import described_at, flat
from grpo_core.errors import GrpoError
from grpo_core.explain import Quantity, explain
from grpo_core.export.script import step_script
from grpo_core.learners import origin
from grpo_core.premises import can_move, has_difficulty, possible_rewards, right_share, step_follows_rate
from grpo_core.reasons import reasons
from grpo_core.record import Step
from grpo_core.testing.updates import trained
from grpo_core.versions import newest
from tests.core.claims.drawn_updates import ENDS, of_all_premises
from tests.core.lm_steps import lm_settings, lm_step

SAME_POLICY = re.compile(r"the one that sampled|when (it was )?sampled|draws? from the bars")
"""Words that are true only if the policy before the update drew the samples."""


def right(step: Step) -> np.ndarray | None:
    """Return which completions are right and which are wrong, as 1 and 0, or a number between. None if unknown."""
    if step.settings.is_recorded:
        return None
    if step.settings.is_language:
        assert step.reward_parts is not None
        return step.reward_parts[:, 0]
    task = step.settings.bandit
    if task.landscape == "length":
        return np.asarray(1.0 - step.tokens[:, 0])
    if task.landscape == "chain":
        return np.array([np.mean([a == 3 * t % task.actions for t, a in enumerate(row)]) for row in step.tokens])
    return None


def payable(step: Step, group: int) -> set[float] | None:
    """Return the rewards that a completion of the prompt, or a step of it, can have. None if they are unknown."""
    if step.settings.is_recorded:
        return None
    if step.settings.is_language:
        paid = step.settings.language
        return None if any(paid.part_weights) else {0.0}
    task = step.settings.bandit
    a, level = np.arange(1, task.actions + 1), task.levels[group]
    match task.landscape:
        case "single_peak":
            return {level + max(0, 1 - abs(n - task.peak) / task.half_width) for n in a}
        case "double_peak":
            far = [(0.7, abs(a - 3)), (1.0, abs(a - 8))]
            return set(level + np.max([high * np.maximum(0, 1 - d / task.half_width) for high, d in far], axis=0))
        case "linear":
            return set(level + a / 10)
        case "custom":
            return {level + one for one in task.custom}
        case "length":
            return {level, level + 1.0}
        case "chain" if step.settings.objective.credit == "process":
            faulty, every = task.faulty_action, [(t, n) for t in range(task.max_length) for n in a]
            return {task.faulty_reward if n == faulty else float(n - 1 == 3 * t % task.actions) for t, n in every}
        case "chain":
            return {level + n / task.max_length for n in range(task.max_length + 1)}
    raise AssertionError(task.landscape)


def compared(step: Step, group: int) -> np.ndarray:
    """Return the rewards in a group, of completions or of steps, without missing ones."""
    rows = step.group == group
    if step.settings.objective.credit == "process":
        assert step.step_rewards is not None
        held = step.step_rewards[rows][step.mask[rows]]
    else:
        held = step.rewards[rows]
    return np.asarray(held[~np.isnan(held)])


def is_true_of(text: str, step: Step, groups: list[int]) -> bool:
    """Return whether what the text says about each of these groups of equal rewards is true."""
    judged = right(step)
    answers = None if judged is None else [judged[step.group == g] for g in groups]
    ends = [payable(step, g) for g in groups]
    whole = [not np.isnan(step.rewards[step.group == g]).any() for g in groups]
    if "all correct" in text and not (answers and all(whole) and all((own == 1).all() for own in answers)):
        return False
    if "all wrong" in text and not (answers and all(whole) and all((own == 0).all() for own in answers)):
        return False
    language = step.settings.is_language and not step.settings.is_recorded and step.settings.language.answer_weight != 0
    if re.search(r"harder prompt", text) and not (language and answers and all((own == 1).all() for own in answers)):
        return False
    if re.search(r"easier prompt", text) and not (language and answers and all((own == 0).all() for own in answers)):
        return False
    differ = any(one is None or max(one) - min(one) > 1e-9 for one in ends)
    if re.search(r"larger group (can make|makes)", text) and (step.settings.is_recorded or not differ):
        return False
    if "the same for every answer" in text and differ:
        return False
    for found in re.finditer(r"Nothing is paid more than (\S+) here", text):
        shown = float(found[1].replace("−", "-"))
        if any(one is None or abs(max(one) - shown) > 5e-4 * max(1, abs(shown)) for one in ends):
            return False
    alone = [int((step.group == g).sum()) == 1 for g in groups]
    return not re.search(r"G = 1|group of one|Groups of one|group size of 2", text) or all(alone)


@pytest.mark.parametrize("count", [40, pytest.param(1000, marks=pytest.mark.long)])
def test_what_is_said_of_equal_rewards_is_true_of_the_task(count: int) -> None:
    chance, seen, wrong = np.random.default_rng(3), Counter[str](), list[tuple[object, ...]]()
    for step in (one for _ in range(count) for one in of_all_premises(chance)):
        paid = {g: compared(step, g) for g in np.unique(step.group).tolist()}
        dead = [g for g, own in paid.items() if not len(own) or np.ptp(own) == 0]
        for key, reason in reasons(step, 0).items():
            if not key.startswith("group:") and key != "dead_groups":
                continue
            groups = dead if key == "dead_groups" else [int(key.partition(":")[2])]
            chips = reason.chip.split(", ") if key == "dead_groups" else []
            text = reason.sentence if len(chips) > 1 else f"{reason.chip}: {reason.sentence}"
            seen.update(word for word in WORDS if word in text)
            if not is_true_of(text, step, groups):
                wrong.append((text, step.settings.task, step.rewards))
    assert not wrong, (len(wrong), wrong[:3])
    assert set(seen) == set(WORDS), set(WORDS) - set(seen)


WORDS = (
    "all correct", "all wrong", "harder prompt", "easier prompt", "A larger group makes", "the same for every answer",
    "Nothing is paid more than", "G = 1", "one scored",
)  # fmt: skip # table, several per line
"""Words that must come up among the draws."""


@pytest.mark.parametrize("count", [30, pytest.param(500, marks=pytest.mark.long)])
def test_the_policy_before_the_update_is_called_the_sampler_only_if_it_sampled(count: int) -> None:
    chance, stale = np.random.default_rng(4), 0
    for step in (one for _ in range(count) for one in of_all_premises(chance)):
        older = step.settings.learner.staleness > 0 and step.step > 1 and not step.settings.is_recorded
        said = [reason.sentence for reason in reasons(step, 0).values()]
        said += [explain(step, Quantity("ratio", passed=0, row=0, token=0)).note]
        if older:
            said += [step_script(step, origin(step.settings))]
            assert any("from an earlier policy" in text for text in said)
        else:
            assert not any("from an earlier policy" in text for text in said)
        assert not older or not [text for text in said if SAME_POLICY.search(text)]
        stale += older
    assert stale > 5


PREMISES: dict[str, Callable[[Step], Any]] = {
    "right": right_share,
    "payable": lambda step: [possible_rewards(step, int(group)) for group in np.unique(step.group)],
    "difficulty": has_difficulty,
    "moves": can_move,
    "follows_rate": step_follows_rate,
}
"""Facts on which sentences depend."""
DECIDE: dict[str, set[str]] = {
    "objective.credit": {"payable"},
    "optimizer.learning_rate": {"moves"},
    "optimizer.step_length": {"follows_rate"},
    **{f"BanditTask.task.{name}": {"right", "payable"} for name in ("landscape", "actions", "max_length")},
    **{f"BanditTask.task.{name}": {"payable"} for name in ("peak", "half_width", "custom", "levels")},
    **{f"BanditTask.task.{name}": {"payable"} for name in ("faulty_action", "faulty_reward")},
    "LanguageTask.task.problem": {"payable"},
    "LanguageTask.task.answer_weight": {"payable", "difficulty"},
    **{f"LanguageTask.task.{name}": {"payable"} for name in ("working_weight", "bonus", "call_weight")},
    **{f"LanguageTask.task.{name}_weight": {"payable"} for name in ("form", "brevity", "format", "words")},
    **{f"LanguageTask.task.{name}": set() for name in ("format", "thinking")},
    **{f"objective.importance_{name}": set() for name in ("floor", "level", "mode")},
}
"""Setting -> the facts that its value decides. Every setting since 0.4.0 has a row, if it decides none an empty one."""


def decided(step: Step) -> dict[str, set[str]]:
    """Return the premises that change if a single setting of an update gets another value, by the setting's path."""
    found: dict[str, set[str]] = {}
    before = {name: fact(step) for name, fact in PREMISES.items()}
    for path, value in flat(step.settings).items():
        for other in others_of(path, value, type(step.settings.task)):
            with suppress(GrpoError, ValueError, IndexError):  # not allowed, or not of this update's shape
                changed = dataclasses.replace(step, settings=step.settings.replace({path: other}))
                after = {name: fact(changed) for name, fact in PREMISES.items()}
                found.setdefault(path, set()).update(
                    name for name in PREMISES if not np.array_equal(np.asarray(before[name]), np.asarray(after[name]))
                )
    return found


def others_of(path: str, value: object, task: type) -> Iterator[object]:
    """Yield other values of a setting: its choices, its bounds, and a number, a truth or an entry that differs."""
    rule = described_at(path, task)
    yield from (choice for choice in rule.choices if choice != value)
    match value:
        case bool():
            yield not value
        case int() | float():
            yield from (value + 1, value - 1, value / 2, 0, *(end for end in (rule.low, rule.high) if abs(end) < 1e3))
        case tuple():
            yield (*value[:-1], (value[-1] if value else 0.0) + 1)
            yield (*value, 3.0)
        case None:
            yield 1.0
    if rule.optional:
        yield None


def of_all_tasks() -> Iterator[Step]:
    """Yield an update of every kind of task that means something else by a reward."""
    for ends in ENDS:
        custom = {"task.landscape": "custom"} if "task.custom" in ends else {}
        yield trained(Settings().replace({**custom, **ends, "learner.group_size": 2}), 1)
    for name, folder, bonus in (
        ("gameable", "", 0.0),
        ("gameable", "", 0.1),
        ("calculator", "", 0.0),
        ("sums", "m", 0.0),
    ):
        paid = {"task.answer_weight": 0.0, "task.bonus": bonus}
        settings = lm_settings(**{"task.problem": name, "model.folder": folder, **paid})
        yield dataclasses.replace(lm_step(1, prompts=1, group_size=2), settings=settings)


def test_a_setting_that_decides_what_a_sentence_depends_on_has_a_row() -> None:
    found, since = dict[str, set[str]](), dict[str, str]()
    for step in of_all_tasks():
        task = type(step.settings.task)
        for path, names in decided(step).items():
            key = f"{task.__name__}.{path}" if path.startswith("task.") else path
            found.setdefault(key, set()).update(names)
            since[key] = described_at(path, task).since
    assert {key: names for key, names in found.items() if names} == {
        key: names for key, names in DECIDE.items() if names
    }
    new = [key for key, version in since.items() if newest(version, "0.3.1") != "0.3.1" and key not in DECIDE]
    assert not new, f"say which premises these settings decide, or an empty set if none: {new}"
