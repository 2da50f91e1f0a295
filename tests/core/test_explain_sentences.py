"""Statements in explanations about a direction, a size or a cause, checked against the engine with several settings."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from grpo_core.config import Objective, Settings, about
from grpo_core.explain import KINDS, Node, Quantity, explain
from grpo_core.objective import gradient
from grpo_core.record import Step
from grpo_core.teaching.lessons.experiments.family import FAMILY
from tests.core.steps import asked, log_softmax, random_step
from tests.core.test_explain import with_ratio


def explained(step: Step, quantity: Quantity, objective: Objective) -> Node:
    """Explain a number of the update under another objective."""
    return explain(asked(step, objective), quantity)


# -- SAPO: what becomes weaker -----------------------------------------------------------------------------------------


def test_sapos_sentence_says_what_becomes_weaker() -> None:
    note = explained(with_ratio(2.0, 1.0), Quantity("surrogate", row=0), sampled(surrogate="sapo")).note
    assert "share of the unclipped push" in note
    assert "itself still grows" in note
    assert "the weaker the push" not in note


# -- the ratio in front of the KL --------------------------------------------------------------------------------------

SIZE = 3
RNG = np.random.default_rng(4)
Z0, Z1 = RNG.normal(size=SIZE), RNG.normal(size=(SIZE, SIZE))
OLD0, OLD1 = Z0 + RNG.normal(0, 0.4, SIZE), Z1 + RNG.normal(0, 0.4, (SIZE, SIZE))
REF0, REF1 = RNG.normal(size=SIZE), RNG.normal(size=(SIZE, SIZE))


def sampled(**changes: object) -> Objective:
    return Objective(**({"baseline": "none", "std": "none", "beta": 0.0} | changes))  # type: ignore[arg-type]


def expected_gradient(kind: str, level: str, tokens: int) -> np.ndarray:
    """Return the engine's gradient with respect to the logits, averaged over completions sampled from π_old.

    The ratio is in front of the KL, and the policy has one or two tokens, each with weight 1.
    """
    now, old, ref = ((log_softmax(a), log_softmax(b)) for a, b in ((Z0, Z1), (OLD0, OLD1), (REF0, REF1)))
    total = np.zeros((SIZE + 1, SIZE))
    objective = sampled(kl=kind, kl_importance=True, level=level, beta=1.0, reduction="sequence_sum")
    for completion in np.ndindex(*(SIZE,) * tokens):
        logs = [
            np.array([[p[0][completion[0]], *(p[1][completion[0], a] for a in completion[1:])]])
            for p in (now, old, ref)
        ]
        here = [now[0], *(now[1][completion[0]] for _ in completion[1:])]
        exact = np.array(
            [[float(np.exp(x) @ (x - y)) for x, y in zip(here, [ref[0], ref[1][completion[0]]], strict=False)]]
        )
        flow = gradient(
            objective, logs[0], logs[1], np.zeros(1), np.ones((1, tokens), bool), ref_logp=logs[2], exact_kl=exact
        )[0]
        chance = float(np.exp(logs[1].sum()))
        for t, action in enumerate(completion):
            row = 0 if t == 0 else 1 + completion[0]
            total[row] += chance * flow[t] * ((np.arange(SIZE) == action) - np.exp(here[t]))
    return total


def kl_of_completions(z0: np.ndarray, z1: np.ndarray, tokens: int) -> float:
    p0, p1 = log_softmax(z0), log_softmax(z1)
    inner = (np.exp(p1) * (p1 - log_softmax(REF1))).sum(-1) if tokens > 1 else np.zeros(SIZE)
    return float(np.exp(p0) @ (p0 - log_softmax(REF0) + inner))


def true_gradient(tokens: int) -> np.ndarray:
    """Return central differences of the exact KL of entire completions."""
    found, h = np.zeros((SIZE + 1, SIZE)), 1e-6
    for row in range(SIZE + 1):
        for action in range(SIZE):
            sides = []
            for sign in (1, -1):
                z0, z1 = Z0.copy(), Z1.copy()
                (z0 if row == 0 else z1[row - 1])[action] += sign * h
                sides.append(kl_of_completions(z0, z1, tokens))
            found[row, action] = (sides[0] - sides[1]) / (2 * h)
    return found


def note_on_the_ratio(kind: str, level: str, tokens: int) -> str:
    step = random_step(tokens=tokens, passes=2, seed=3)
    row = int(step.mask.sum(-1).argmax())
    objective = sampled(kl=kind, kl_importance=True, level=level, beta=1.0)
    return explained(step, Quantity("kl", passed=1, row=row, token=0), objective).note


@pytest.mark.parametrize("kind", ["k1", "k2", "k3"])
@pytest.mark.parametrize(("level", "tokens"), [("token", 1), ("sequence", 1), ("sequence_sum", 2), ("sequence", 2)])
def test_what_is_said_of_the_ratio_before_an_estimate_is_so(kind: str, level: str, tokens: int) -> None:
    note = note_on_the_ratio(kind, level, tokens)
    right = np.allclose(expected_gradient(kind, level, tokens), true_gradient(tokens), atol=1e-8)
    assert right == (kind != "k2" and (level, tokens) != ("sequence", 2))
    positive = "gradient is that of KL(π‖π_ref)" in note or "is that of the KL of whole completions" in note
    assert positive == right and "expected gradient is 0" not in note, note


def test_the_ratio_before_an_exact_kl_has_no_part_in_the_expected_gradient() -> None:
    # what flows through the distribution is the learner's; the closed form holds the ratio's own part alone
    np.testing.assert_allclose(expected_gradient("exact", "token", 1), 0.0, atol=1e-12)
    assert "needs no ratio" in note_on_the_ratio("exact", "token", 1)


# -- the clip ----------------------------------------------------------------------------------------------------------


def bracket(latex: str, r: float, a: float, o: Objective) -> bool:
    """Evaluate the condition in the formula of “clipped” as it is written."""
    condition = latex.partition("[")[2].rpartition("\\right]")[0]
    for text, value in (
        (r"1 + \varepsilon^{+}", f"{1 + o.clip_high!r}"),
        (r"1 - \varepsilon", f"{1 - o.clip_low!r}"),
        (r"\; \mathrm{and} \;", "and"),
        (r"\; \mathrm{or} \;", "or"),
        (" c", f" {o.dual_clip!r}"),
        ("r_{i}", f"{r!r}"),
        ("A ", f"({a!r}) "),
    ):
        condition = condition.replace(text, value)
    return bool(eval(condition, {"__builtins__": {}}))


@pytest.mark.parametrize("cap", [None, 3.0, 1.2, 1.1, 0.9, 0.5])
def test_the_formula_of_clipped_says_what_its_value_says(cap: float | None) -> None:
    objective = sampled(dual_clip=cap)
    for ratio in (0.3, 0.6, 0.85, 0.95, 1.05, 1.15, 1.5, 4.0):
        for advantage in (-1.0, 0.0, 2.0):
            node = explained(with_ratio(ratio, advantage), Quantity("clipped", row=0), objective)
            assert node.agrees
            assert bracket(node.latex, ratio, advantage, objective) == bool(node.engine), (ratio, advantage)


def test_a_ratio_whose_log_was_limited_is_not_shown_as_the_quotient() -> None:
    step = with_ratio(5.0, 1.0)
    limited = explained(step, Quantity("ratio", row=0), sampled(log_ratio_limit=0.5))
    assert limited.value == pytest.approx(math.exp(0.5))
    assert r"\frac" not in limited.latex
    assert r"\frac" in explained(step, Quantity("ratio", row=0), sampled()).latex


# -- one symbol, one meaning -------------------------------------------------------------------------------------------


def test_the_cap_of_the_dual_clip_and_the_limit_of_the_log_ratio_have_two_symbols() -> None:
    objective = sampled(dual_clip=3.0, log_ratio_limit=20.0)
    step = with_ratio(4.0, -1.0)
    assert "c" in explained(step, Quantity("surrogate", row=0), objective).latex.replace("clip", "")
    limit = explained(step, Quantity("log_ratio", row=0), objective).latex
    assert r"\log r_{\max}" in limit
    assert "c" not in limit.replace("clip", "").replace("mathrm", "").replace("frac", "")


@pytest.mark.parametrize("tokens", [1, 3])
def test_the_ratio_of_a_completion_is_called_s_and_that_of_a_token_r(tokens: int) -> None:
    step = random_step(tokens=tokens, passes=2)
    for level, letter in (("token", "r"), ("sequence", "s"), ("sequence_sum", "s")):
        node = explained(step, Quantity("ratio", passed=1, row=0, token=0), Objective(level=level))
        assert node.symbol.startswith(letter)
        surrogate = explained(step, Quantity("surrogate", passed=1, row=0, token=0), Objective(level=level))
        assert rf"({letter}_" in surrogate.latex


def test_no_symbol_of_a_number_stands_for_two_kinds_of_numbers() -> None:
    settings = Settings().replace({"learner.critic": True, "task.landscape": "chain"})
    step = dataclasses.replace(
        random_step(tokens=3, passes=2, settings=settings), values=np.full((8, 3), 0.5), step_rewards=np.ones((8, 3))
    )
    objectives = (
        Objective(),
        Objective(level="sequence"),
        Objective(baseline="given"),
        Objective(baseline="group_mean", credit="process"),
    )
    owners: dict[str, set[str]] = {}
    for objective in objectives:
        for name in ("ratio", "log_ratio", "td_error", "value", "advantage", "reward", "step_reward", "step_score"):
            token = 0 if "token" in KINDS[name].axes else None
            node = explained(step, Quantity(name, passed=0, row=1, token=token), objective)
            if node.note.startswith(("there is no critic", "rewards were given")):
                continue
            owners.setdefault(node.symbol.split("_{")[0] + "#" * (node.quantity.token is not None), set()).add(name)
    assert {symbol: names for symbol, names in owners.items() if len(names) > 1} == {}
    epsilon = about(Objective, "std_epsilon").symbol
    assert epsilon == "δ"
    assert r"\delta^{V}" in next(symbol for symbol, names in owners.items() if "td_error" in names)


def test_a_source_names_its_year_once() -> None:
    for member in FAMILY:
        assert member.citation.count(str(member.year)) == 1, member.name
