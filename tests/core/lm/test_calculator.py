"""The toy agent: the tool's answers, the tokens it wrote, and the effect of its mask on the loss."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from grpo_core import step_table
from grpo_core.config import Settings, language_settings
from grpo_core.evaluated_step import EvaluatedStep
from grpo_core.explain import explain
from grpo_core.explain.quantity import Quantity
from grpo_core.lm import calculator
from grpo_core.lm.answers import replayed
from grpo_core.lm.engines import ENGINES
from grpo_core.lm.interface import NUMPY, TORCH
from grpo_core.lm.learner import LanguageLearner
from grpo_core.lm.rewards import origin
from grpo_core.lm.vocabulary import STOP, decode
from grpo_core.metrics import metrics
from grpo_core.questions import Answer, Replay, placed
from grpo_core.reasons import reasons
from grpo_core.record import Step
from grpo_core.trainers.own_run import trajectories
from grpo_core.what_if.replay import replayed as what_if

AGENT = {
    "task.problem": "calculator",
    "model.checkpoint": "calculator",
    "task.max_tokens": 40,
    "optimizer.learning_rate": 3e-4,
    "task.accuracy_every": 1000,
    "task.held_out": 8,
}


def agent(**changes: object) -> Settings:
    """Return settings of a run with the tool; write ``task__calls`` for ``task.calls``."""
    return language_settings().replace({**AGENT, **{name.replace("__", "."): x for name, x in changes.items()}})


def learner(settings: Settings, engine: str = NUMPY, history: tuple[Step, ...] = ()) -> LanguageLearner:
    return LanguageLearner(settings, history=history, make_policy=ENGINES[engine])


@pytest.fixture(scope="module")
def first() -> Step:
    """The first update of an agent."""
    return next(learner(agent()))


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        ("47*8", "376"),
        ("12-99", "-87"),
        ("9999+1", "10000"),
        ("47*8+5", "?"),
        ("47", "?"),
        ("", "?"),
        ("*8", "?"),
        ("12345*2", "?"),
        ("4(7*8", "?"),
    ],
)
def test_the_tool_does_one_operation(call: str, answer: str) -> None:
    assert calculator.calculated(call) == answer


@pytest.mark.parametrize(
    ("text", "right", "words"),
    [
        ("(47*8)376 (376+56)432 432", True, "right, calculated"),
        ("432", True, "right, without the tool"),
        ("376", False, "guessed"),
        ("", False, "guessed"),
        ("(47*8)376 376", False, "stopped half way"),
        ("(47*8)376 431", False, "after a call"),
        ("(47*8)376 (376+56)432 ", False, "after a call"),
        ("(47*8+56)? 400", False, "after an error"),
        ("47*8)? 400", False, "after an error"),
    ],
)
def test_an_answer_is_what_the_model_says_last(text: str, right: bool, words: str) -> None:
    verdict = calculator.verdict(calculator.prompt("47*8+56"), text)
    assert verdict.right is right and words in verdict.words
    assert calculator.verdict(calculator.prompt("47*8+56"), text, ended=False).right is right


def test_every_answer_in_a_completion_is_the_tools_and_is_not_in_the_loss(first: Step) -> None:
    own = calculator.written(first.tokens, first.there)
    assert first.present is not None and np.array_equal(own, first.mask) and (first.there & ~own).any()
    for tokens, there, mine in zip(first.tokens, first.there, own, strict=True):
        text, place = decode(tokens[there]), 0
        for end in [t + 1 for t, letter in enumerate(text) if letter == ")"]:
            said = calculator.calculated(calculator.call_in(text[place:end])) + " "
            assert text[end : end + len(said)] == said[: len(text) - end]
            assert mine[place:end].all() and not mine[end : end + len(said)][: len(text) - end].any()
            place = end + len(said)
        assert mine[there][place:].all()
    evaluated = EvaluatedStep(first)
    assert not evaluated.gradient(0)[~first.mask].any(), "the loss does not touch what the tool wrote"
    assert first.logp[0][first.there & ~own].mean() < -4.0, "the policy would hardly have written it itself"


def test_without_the_mask_the_loss_counts_what_the_tool_wrote(first: Step) -> None:
    open_settings = agent(task__mask_tool=False)
    other = next(learner(open_settings))
    assert np.array_equal(other.tokens, first.tokens) and other.mask.sum() > first.mask.sum()
    tool = other.there & ~calculator.written(other.tokens, other.there)
    assert EvaluatedStep(other).gradient(0)[tool].any()
    asked = replayed(learner(agent()), Replay(step=1, settings=open_settings), first)
    again = what_if(first, open_settings, answer=asked)
    assert np.array_equal(again.mask, other.mask) and again.logp.tobytes() == other.logp.tobytes()
    at_once = what_if(first, open_settings)
    assert EvaluatedStep(at_once).gradient(0).tobytes() == EvaluatedStep(other).gradient(0).tobytes()
    back = what_if(other, agent())
    assert EvaluatedStep(back).gradient(0).tobytes() == EvaluatedStep(first).gradient(0).tobytes()


@pytest.mark.parametrize("masked", [True, False])
def test_the_penalty_of_a_typed_completion_counts_the_tokens_that_the_loss_counts(first: Step, masked: bool) -> None:
    settings = agent(task__mask_tool=masked).replace({"objective.kl_in": "reward", "objective.beta": 0.1})
    away = np.random.default_rng(3).normal(size=first.old_logp.shape)
    mask = first.mask if masked else first.there
    step = dataclasses.replace(first, settings=settings, mask=mask, ref_logp=first.old_logp + away)
    row = int((first.there & ~first.mask).sum(axis=-1).argmax())
    real, no_tokens = first.there[row], np.zeros((int(first.there[row].sum()), 0))
    assert step.ref_logp is not None and step.reward_parts is not None
    typed = Answer(
        tokens=step.tokens[row][real],
        logp=step.old_logp[row][real],
        ref_logp=step.ref_logp[row][real],
        dist_logp=no_tokens,
        reward=float(step.rewards[row]),
        parts=step.reward_parts[row],
    )
    counted = calculator.counted(settings.language, typed.tokens[None], np.ones((1, len(typed.tokens)), bool))[0]
    group = int(step.group[row])
    place = int(np.flatnonzero(step.group == group).tolist().index(row))
    _, gained = placed(step, group, typed, counted)
    assert gained[-1] == pytest.approx(gained[place]), "the same completion typed again has the same advantage"


@pytest.mark.parametrize("changes", [{}, {"task__calls": 1}, {"task__max_tokens": 26}])
def test_length_and_cut_off_are_those_of_whole_completions_whatever_the_loss_counts(changes: dict[str, object]) -> None:
    settings = agent(**changes)
    step = next(learner(settings))
    texts = [decode(tokens[there]) for tokens, there in zip(step.tokens, step.there, strict=True)]
    lengths = step.there.sum(axis=-1)
    assert step.mask.sum() < lengths.sum() and metrics(step)["length"] == lengths.mean()
    assert explain(step, Quantity("length")).value == pytest.approx(lengths.mean())
    limit, calls = settings.language.max_tokens, settings.language.calls
    ends = [STOP in tokens[there] for tokens, there in zip(step.tokens, step.there, strict=True)]
    cut = sum(not end and text.count(")") <= calls for end, text in zip(ends, texts, strict=True))
    assert (cut > 0) == ("task__max_tokens" in changes) and all(len(text) <= limit for text in texts)
    said = reasons(step, 0).get("length")
    assert (said.sentence if said else "").startswith(f"{cut} of {len(texts)} completions" if cut else "")
    assert bool(said) == bool(cut)


def test_its_numbers_explain_themselves(first: Step) -> None:
    for row in range(len(first.tokens)):
        paid = explain(first, Quantity("reward", row=row))
        assert paid.agrees and paid.value == first.rewards[row]
    dear = next(learner(agent(task__call_weight=-0.1)))
    row = int(dear.rewards.argmin())
    costly = explain(dear, Quantity("reward", row=row))
    assert costly.agrees and costly.value == dear.rewards[row] < 0
    assert [part.name for part in costly.inputs] == ["right_answer", "calls"]
    with_tool = {decode(row[there]) for row, there in zip(first.tokens, first.there, strict=True)}
    column = next(n for n, one in enumerate(step_table.columns(first)) if one.name == "completion")
    table = step_table.rows(EvaluatedStep(first), 0, origin=origin(first.settings))
    assert {row.cells[column].removesuffix("⏎") for row in table} == with_tool


def test_both_engines_draw_the_same_conversations(first: Step) -> None:
    pytest.importorskip("torch")
    other = next(learner(agent(), TORCH))
    assert np.array_equal(other.tokens, first.tokens) and np.array_equal(other.mask, first.mask)
    assert np.abs(other.logp - first.logp).max() < 1e-4


def test_a_run_goes_on_from_its_record_bit_for_bit() -> None:
    run = learner(agent(learner__critic=True, objective__baseline="given"))
    history = [next(run) for _ in range(2)]
    again = learner(history[-1].settings, history=(history[0],))
    assert next(again).logp.tobytes() == history[1].logp.tobytes()


@pytest.mark.parametrize(("calls", "ends"), [(0, "max_turns"), (1, "max_turns"), (3, "agent_completed")])
def test_one_call_too_many_ends_a_completion(calls: int, ends: str) -> None:
    step = next(learner(agent(task__calls=calls)))
    found = trajectories(step)
    assert found is not None and ends in {one.ended for one in found}
    for row, one in enumerate(found):
        tokens = step.tokens[row][step.there[row]]
        text = decode(tokens)
        assert one.called <= calls + 1 and calculator.calls(text) <= calls
        assert (one.ended == "max_turns") == (text.endswith(")") and text.count(")") == calls + 1)
        assert (one.ended == "agent_completed") == (tokens[-1] == STOP)
        assert sum(turn.tokens or 0 for turn in one.turns) == len(tokens)
        assert sum(turn.in_loss or 0 for turn in one.turns) == int(step.mask[row].sum())
        assert step.reward_parts is not None and step.reward_parts[row, 1] == calculator.calls(text)


def test_an_error_of_the_tool_is_read_as_one() -> None:
    step = next(learner(agent(seed=3)))
    found = trajectories(step)
    assert found is not None
    failed = [one.failures for one in found]
    texts = [decode(row[there]) for row, there in zip(step.tokens, step.there, strict=True)]
    assert failed == [text.count("? ") for text in texts] and any(failed)


def test_the_shipped_agent_seldom_calls_and_is_seldom_right() -> None:
    steps = [next(learner(agent(seed=seed, task__prompts=32))) for seed in range(2)]
    right = np.mean([step.reward_parts[:, 0].mean() for step in steps if step.reward_parts is not None])
    called = np.mean([(~calculator.written(s.tokens, s.there) & s.there).any(axis=-1).mean() for s in steps])
    assert 0.15 < right < 0.4 and 0.3 < called < 0.6


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 9))
def test_with_the_mask_it_learns_faster(seed: int) -> None:
    def share(*, masked: bool) -> float:
        run = learner(agent(seed=seed, task__mask_tool=masked))
        parts = [next(run).reward_parts for _ in range(30)]
        return float(np.mean([part[:, 0].mean() for part in parts[-5:] if part is not None]))

    assert share(masked=True) > share(masked=False) + 0.1
