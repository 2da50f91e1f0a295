"""The NumPy engine against torch in float64: every gradient, the sampled tokens, and the results after thirty
updates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from grpo_core.config import Model, Objective, Settings, language_settings
from grpo_core.errors import GrpoError, SettingsError
from grpo_core.learners import leading_to
from grpo_core.lm.character_policy import CharacterPolicy
from grpo_core.lm.engines import ENGINES
from grpo_core.lm.interface import NUMPY, TORCH, Scores, engine_of
from grpo_core.lm.learner import LanguageLearner
from grpo_core.lm.model import Transformer, initialized, layout, score
from grpo_core.lm.numpy_engine.numpy_policy import NumpyPolicy, logit_gradient, started
from grpo_core.lm.numpy_engine.sampler import CachedPrefixes
from grpo_core.lm.numpy_engine.threads import set_threads
from grpo_core.lm.numpy_engine.transformer import backward, forward, log_softmax, softmax
from grpo_core.lm.numpy_engine.weights import NormalNumbers, Weights, parameters, shapes
from grpo_core.lm.packing import packed
from grpo_core.lm.passes import Loss
from grpo_core.lm.sampler import sample
from grpo_core.lm.sampling import drawn
from grpo_core.lm.vocabulary import STOP
from grpo_core.record import Step
from grpo_core.surrogates import SURROGATES
from tests.core.lm.models import CPU, TINY, lively, plain_logp, prompts, requested
from tests.core.lm.test_learner import same, small
from tests.core.lm.test_model import batch
from tests.core.lm.test_model import shapes as batch_shapes

SIZES = {
    "tiny": TINY,
    "one layer, one head": Model(layers=1, width=8, heads=1, context=32, checkpoint="untrained"),
    "three layers": Model(layers=3, width=24, heads=4, context=48, checkpoint="untrained"),
}
SWITCHES: dict[str, dict[str, Any]] = {
    **{f"surrogate {name}": {"surrogate": name} for name in SURROGATES},
    "clipped on both sides": {"clip_low": 0.01, "clip_high": 0.01, "dual_clip": 1.5},
    "log-ratio limit": {"log_ratio_limit": 0.05},
    "of a sequence": {"level": "sequence"},
    "summed over a sequence": {"level": "sequence_sum"},
    "k1": {"kl": "k1"},
    "k2 times the ratio": {"kl": "k2", "kl_importance": True},
    "exact KL": {"kl": "exact", "beta": 0.5},
    "exact KL times the ratio": {"kl": "exact", "beta": 0.5, "kl_importance": True},
    "exact KL in the reward": {"kl": "exact", "kl_in": "reward"},
    "entropy bonus": {"entropy_bonus": 0.2},
    "exact KL and entropy bonus": {"kl": "exact", "entropy_bonus": 0.2},
    "no reference": {"beta": 0.0},
    "per token": {"reduction": "token"},
    "constant": {"reduction": "constant", "max_tokens": 9},
}


def pair(size: Model = TINY, seed: int = 0) -> tuple[Transformer, Weights]:
    """Return the same model, with large weights, in both engines, in float64."""
    model = lively(size, seed).double()
    weights = Weights(size, np.float64)
    weights.fill({name: weight.detach().numpy() for name, weight in model.named_parameters()})
    return model, weights


def gradients(model: Transformer) -> dict[str, np.ndarray]:
    found = {n: torch.zeros_like(w) if w.grad is None else w.grad for n, w in model.named_parameters()}
    model.zero_grad()
    return {name: gradient.numpy() for name, gradient in found.items()}


def agree(found: Weights, expected: dict[str, np.ndarray], within: float = 1e-11) -> None:
    size = max(float(np.abs(gradient).max()) for gradient in expected.values())
    assert size > 0
    for name, gradient in expected.items():
        assert np.abs(found.named[name] - gradient).max() <= within * size, name


@pytest.mark.parametrize("name", SIZES)
def test_names_shapes_and_order_of_the_weights_are_those_of_torch(name: str) -> None:
    model = Transformer(SIZES[name])
    assert list(shapes(SIZES[name]).items()) == [(n, tuple(w.shape)) for n, w in model.named_parameters()]
    assert len(Weights(SIZES[name]).flat) == parameters(SIZES[name])


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("seed", [0, 7, 2**40 + 3])
def test_an_untrained_model_begins_as_torch_begins_it(name: str, seed: int) -> None:
    expected, found = initialized(Transformer(SIZES[name]), seed), started(SIZES[name], seed)
    for label, weight in expected.named_parameters():
        assert np.abs(found.named[label] - weight.detach().numpy()).max() < 1e-7, label


@pytest.mark.parametrize("shape", [(16,), (17,), (3, 13), (20, 64)])
def test_normal_numbers_are_those_of_torch(shape: tuple[int, ...]) -> None:
    numbers, generator = NormalNumbers(5), torch.Generator().manual_seed(5)
    for _ in range(3):
        assert np.abs(numbers.draw(shape) - torch.randn(shape, generator=generator).numpy()).max() < 2e-6


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("rows", [range(6), [0, 0, 3, 3, 5, 4], [1, 1, 2, 2, 4, 4]], ids=["distinct", "some", "equal"])
def test_every_gradient_is_that_of_autograd_through_the_plain_pass(name: str, rows: Sequence[int]) -> None:
    model, weights = pair(SIZES[name])
    asked, tokens, mask = batch([3, 6, 4], [1, 7, 3, 5, 2, 7])
    tokens, mask = tokens[list(rows)], mask[list(rows)]
    push = np.random.default_rng(0).normal(size=mask.shape) * mask
    logp = plain_logp(model, asked, tokens, mask, 0.8)
    (torch.from_numpy(push) * logp).sum().backward()
    place, gradient = packed(asked, tokens, mask), Weights(SIZES[name], np.float64)
    trace = forward(weights, place)
    dist = log_softmax(trace.logits / 0.8)
    found = np.where(mask, dist[place.context, place.targets], 0)
    assert np.abs(found - logp.detach().numpy()).max() < 1e-12
    d_logits = np.zeros_like(dist)
    np.add.at(d_logits, (place.context, place.targets), push)
    d_logits -= np.exp(dist) * d_logits.sum(axis=-1, keepdims=True)
    backward(weights, place, trace, d_logits / 0.8, gradient)
    agree(gradient, gradients(model))


@settings(max_examples=40, deadline=None)
@given(shape=batch_shapes(), kinds=st.sampled_from([1, 2, 20]))
def test_every_gradient_of_any_batch_is_that_of_autograd(shape: tuple[list[int], list[int]], kinds: int) -> None:
    model, weights = pair()
    asked, tokens, mask = batch(*shape, kinds)
    place, gradient = packed(asked, tokens, mask), Weights(TINY, np.float64)
    trace = forward(weights, place)
    push = np.random.default_rng(1).normal(size=trace.logits.shape)
    backward(weights, place, trace, push - np.exp(log_softmax(trace.logits)) * push.sum(-1, keepdims=True), gradient)
    scores = score(model, layout(asked, tokens, mask, CPU), 1.0)
    (scores.dist_logp * torch.from_numpy(push)).sum().backward()
    agree(gradient, gradients(model))


@pytest.mark.parametrize("switch", SWITCHES)
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_every_loss_has_the_gradient_of_autograd_down_to_the_weights(switch: str, temperature: float) -> None:
    model, weights = pair()
    reference, ref_weights = pair(seed=1)
    asked, tokens, mask = batch([3, 6, 4], [1, 7, 3, 5, 2, 7, 4, 4, 1], kinds=3)
    numbers = np.random.default_rng(2)
    advantage = numbers.normal(size=len(tokens))
    objective = Objective(**{"beta": 0.3, **SWITCHES[switch]})
    place, tensors = packed(asked, tokens, mask), layout(asked, tokens, mask, CPU)
    now = score(model, tensors, temperature)
    with torch.no_grad():
        ref = score(reference, tensors, temperature)
    old = now.logp.detach().numpy() + numbers.normal(size=mask.shape) * 0.1
    watched = objective.beta != 0
    by_torch = Loss(
        objective=objective,
        place=tensors,
        now=now,
        old=torch.from_numpy(old),
        advantage=torch.from_numpy(advantage),
        reference=ref if watched else None,
    )
    by_torch.terms.loss.backward()
    trace, ref_trace = forward(weights, place), forward(ref_weights, place)
    mine, theirs = (_scores(each, place, temperature) for each in (trace, ref_trace))
    by_numpy = Loss(
        objective=objective, place=place, now=mine, old=old, advantage=advantage, reference=theirs if watched else None
    )
    assert float(by_numpy.terms.loss) == pytest.approx(float(by_torch.terms.loss.detach()), rel=1e-11)
    gradient = Weights(TINY, np.float64)
    backward(weights, place, trace, logit_gradient(by_numpy, temperature), gradient)
    agree(gradient, gradients(model), 1e-10)


def _scores(trace: Any, place: Any, temperature: float) -> Scores:
    dist = log_softmax(trace.logits / temperature)
    logp = np.where(place.mask, dist[place.context, place.targets], 0)
    return Scores(dist_logp=dist, logp=logp, stream=trace.stream)


@pytest.mark.parametrize("keys", [1, 2, 7, 16, 31, 48])
def test_the_softmax_is_that_of_the_plain_formula_bit_for_bit(keys: int) -> None:
    scores = np.random.default_rng(keys).normal(size=(3, 2, 5, keys)).astype(np.float32)
    scores[..., 1:][..., ::3] = -np.inf  # what a token must not attend to
    expected = np.exp(scores - scores.max(axis=-1, keepdims=True))
    expected /= expected.sum(axis=-1, keepdims=True)
    softmax(scores)
    assert np.array_equal(scores, expected)


@pytest.mark.parametrize("temperature", [0.7, 1.0, 1.6])
@pytest.mark.parametrize("count", [1, 5])
def test_the_same_random_numbers_draw_the_same_tokens(temperature: float, count: int) -> None:
    model, weights = pair(seed=4)
    numbers = np.random.default_rng(3).random((24, 14))
    request = requested(prompts(count), numbers, temperature=temperature, likeliest=np.arange(24) > 18)
    expected = sample(model, request)
    found = drawn(CachedPrefixes(weights, prompts(count), 14), request)
    assert np.array_equal(found.tokens, expected.tokens) and np.array_equal(found.mask, expected.mask)
    assert np.abs(found.logp - expected.logp).max() < 1e-6


def test_the_longest_prompt_and_completion_fill_the_context_exactly() -> None:
    model, weights = pair()
    request = requested(np.full((1, TINY.context - 12), 3), np.full((3, 12), 0.5))
    with torch.no_grad():
        model.embed.weight[STOP] -= 100 * model.norm.weight  # it never ends by itself
    weights.embed[STOP] -= 100 * weights.norm.weight
    for done in (sample(model, request), drawn(CachedPrefixes(weights, request.prompt_tokens, 12), request)):
        assert done.mask.shape == (3, 12) and done.mask.all()


class DoublePolicy(CharacterPolicy):
    """torch's policy in float64."""

    def __init__(self, wanted: Settings) -> None:
        super().__init__(wanted)
        self.model.double()
        self.reference.double()
        self.critic = self.critic.double()


def numpy_double(wanted: Settings) -> NumpyPolicy:
    """Return NumPy's policy in float64."""
    return NumpyPolicy(wanted, np.float64)


THIRTY: dict[str, dict[str, Any]] = {
    "as shipped": {},
    "exact KL, two passes": {"objective.kl": "exact", "learner.mu": 2, "objective.entropy_bonus": 0.01},
    "critic": {
        "learner.critic": True,
        "learner.critic_rate": 0.003,
        "objective.baseline": "given",
        "objective.std": "none",
    },
    "plain descent": {"optimizer.kind": "sgd", "optimizer.learning_rate": 1e-2, "optimizer.weight_decay": 0.1},
    "decay, no limit": {"optimizer.weight_decay": 0.1, "optimizer.max_grad_norm": None},
    "dead groups drawn again": {"learner.resample_dead": True},
}


@pytest.mark.quick_cases("as shipped", "critic")
@pytest.mark.parametrize("name", THIRTY)
def test_thirty_updates_agree_in_float64(name: str) -> None:
    wanted = small(optimizer__learning_rate=1e-3, task__prompts=3, learner__group_size=6).replace(THIRTY[name])
    runs = [LanguageLearner(wanted, make_policy=m) for m in (DoublePolicy, numpy_double)]
    for _ in range(30):
        by_torch, by_numpy = (next(run) for run in runs)
        assert np.array_equal(by_torch.tokens, by_numpy.tokens)
        assert np.array_equal(by_torch.rewards, by_numpy.rewards)
        assert np.abs(by_torch.logp - by_numpy.logp).max() < 1e-6, "which are recorded in float32"
    model = runs[0].policy.model
    trained = np.concatenate([weight.detach().numpy().ravel() for weight in model.parameters()])
    start = runs[1].policy.reference.flat
    assert np.abs(trained - start).max() > 1e-3, "it has learned"
    assert np.abs(trained - runs[1].policy.weights.flat).max() < 1e-9
    assert np.abs(runs[0].policy.critic.numpy() - runs[1].policy.critic).max() < 1e-9


def going(engine: str, wanted: Settings, history: Sequence[Step] = ()) -> LanguageLearner:
    """Return a learner that this engine computes, in float32."""
    return LanguageLearner(wanted, history=history, make_policy=ENGINES[engine])


STARTS: dict[str, dict[str, Any]] = {
    "shipped": {},
    # all its rewards are equal: Adam would turn the rounding errors of the gradient into full steps
    "untrained": {"model__checkpoint": "untrained", "optimizer__kind": "sgd"},
}


@pytest.mark.parametrize("stop", [2, 3, 5])
@pytest.mark.parametrize(("before", "after"), [(TORCH, NUMPY), (NUMPY, TORCH)])
@pytest.mark.parametrize("start", STARTS)
def test_a_run_goes_on_with_the_other_engine_which_knows_how_far_it_differs(
    before: str, after: str, stop: int, start: str
) -> None:
    wanted = small(**STARTS[start])  # which keeps its weights every three updates
    first = going(before, wanted)
    whole = [next(first) for _ in range(6)]
    assert {engine_of(step) for step in whole} == {before}
    second = going(after, wanted, leading_to(whole[stop - 1], lambda number: whole[number - 1]))
    assert second.recorded_by == before and 0 < second.drift < 1e-4
    then = next(second)
    assert engine_of(then) == after and then.step == stop + 1
    assert np.array_equal(then.tokens, whole[stop].tokens), "so close are the two"
    assert np.abs(then.logp - whole[stop].logp).max() < 1e-4
    assert then.ref_logp is not None and whole[stop].ref_logp is not None
    assert np.abs(then.ref_logp - whole[stop].ref_logp).max() < 1e-4, "the reference begins alike"


def test_the_optimizer_remembers_the_same_in_both_snapshots() -> None:
    states = []
    for engine in ENGINES:
        run = going(engine, small(model__snapshot_every=1))
        states.append([next(run).resume for _ in range(2)][-1])
    for name, value in states[0].items():
        assert states[1][name].dtype == value.dtype and states[1][name].shape == value.shape, name
        # where a gradient is rounding, Adam's first steps go either way, as far as its rate
        most = 2 * small().optimizer.learning_rate if name == "weights" else 1e-6
        assert np.abs(states[1][name] - value).max() <= 1.01 * most, name
    assert states[0].keys() == states[1].keys()


def test_without_torch_only_the_cpu_is_there() -> None:
    with pytest.raises(SettingsError, match="torch is not installed"):
        NumpyPolicy(language_settings().replace({"model.device": "cuda"}))


@pytest.mark.parametrize("stage", ["forward", "backward", "sample"])
def test_too_little_memory_at_any_stage_is_told_and_takes_nothing_with_it(
    stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise MemoryError

    run, whole = going(NUMPY, small()), going(NUMPY, small())
    assert same(next(run), next(whole))
    with monkeypatch.context() as broken:
        broken.setattr(NumpyPolicy, stage, fails)
        with pytest.raises(GrpoError, match=r"not enough memory for 8 completions .* is at update 1"):
            next(run)
    assert same(next(run), next(whole))


def test_matrix_products_take_as_many_threads_as_they_are_told() -> None:
    if not set_threads(1):
        pytest.skip("NumPy's library is not OpenBLAS")
    assert set_threads(2) and set_threads(1)
