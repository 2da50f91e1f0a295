"""The most likely tokens at each position of a model's completions: chosen before the first pass, and
looked up again later.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from grpo_core.errors import RunFileError
from grpo_core.explain import Quantity, explain
from grpo_core.learners import learner
from grpo_core.metrics import metrics
from grpo_core.record import Step
from grpo_core.runs.layout import decoded, encoded
from grpo_core.trainers.hf.scoring import LIKELIEST
from tests.core.trainers.hf.test_policy import distribution
from tests.core.trainers.hf.tiny import KINDS, small


@pytest.fixture(scope="module")
def going(folders: dict[str, Path]) -> Any:
    """A run with a reference, two passes per update, and steps large enough to have an effect."""
    return learner(small(folders["llama"], model__watch_reference=True, learner__mu=2, optimizer__learning_rate=0.05))


@pytest.fixture(scope="module")
def first(going: Any) -> Step:
    step: Step = next(going)
    return step


@pytest.mark.parametrize("kind", KINDS)
def test_they_are_the_likeliest_of_the_policy_before_the_update(kind: str, folders: dict[str, Path]) -> None:
    going = learner(small(folders[kind], optimizer__learning_rate=0.0, model__rows_at_once=3))
    step = next(going)
    assert step.top_tokens is not None and step.top_logp is not None
    assert step.ref_top_logp is None, "no reference was scored"
    assert step.top_tokens.shape == (*step.tokens.shape, LIKELIEST)
    assert (step.top_tokens[~step.mask] == -1).all() and (step.top_logp[:, ~step.mask] == 0).all()
    for row in range(len(step.tokens)):
        with torch.no_grad():
            known = distribution(going.policy.model, step, row).numpy()  # type: ignore[attr-defined]
        for place, logp in enumerate(known):
            ids = step.top_tokens[row, place]
            expected, sampled = np.argsort(-logp, kind="stable")[:LIKELIEST], int(step.tokens[row, place])
            wanted = expected if sampled in expected else np.array([*expected[:-1], sampled])
            assert np.allclose(logp[ids], logp[wanted], atol=1e-3)
            assert sampled in ids and len(set(ids.tolist())) == LIKELIEST
            for found in step.top_logp[:, row, place]:
                assert np.exp(found.astype(float)) == pytest.approx(np.exp(logp[ids]), abs=3e-4)


def test_the_same_tokens_are_looked_up_after_the_update_and_under_the_reference(going: Any, first: Step) -> None:
    second = next(going)
    for step in (first, second):
        assert step.top_tokens is not None and step.top_logp is not None and step.ref_top_logp is not None
        chosen = (step.top_tokens == step.tokens[..., None]).argmax(-1)[..., None]
        before, after = (np.take_along_axis(each, chosen, -1)[..., 0].astype(float) for each in step.top_logp)
        reference = np.take_along_axis(step.ref_top_logp, chosen, -1)[..., 0].astype(float)
        assert step.ref_logp is not None
        for found, exact in ((before, step.logp[0]), (after, step.logp[-1]), (reference, step.ref_logp)):
            assert np.exp(found)[step.mask] == pytest.approx(np.exp(exact)[step.mask], abs=3e-4)
    assert first.top_logp is not None and first.ref_top_logp is not None and second.top_logp is not None
    assert np.array_equal(first.top_logp[0], first.ref_top_logp), "a fresh adapter changes nothing"
    assert not np.allclose(np.exp(first.top_logp[0]), np.exp(first.top_logp[1]), atol=1e-2)
    assert not np.array_equal(second.top_logp[0], second.ref_top_logp)


def test_what_is_recorded_of_them_takes_fifty_bytes_a_token(first: Step) -> None:
    assert first.top_tokens is not None and first.top_logp is not None and first.ref_top_logp is not None
    size = first.top_tokens.nbytes + first.top_logp.nbytes + first.ref_top_logp.nbytes
    assert size == 50 * first.tokens.size


def test_no_scalar_follows_from_them(first: Step) -> None:
    bare = dataclasses.replace(first, top_tokens=None, top_logp=None, ref_top_logp=None)
    np.testing.assert_equal(metrics(bare), metrics(first))


def test_they_come_back_from_a_record_and_a_record_without_them_reads_as_before(first: Step) -> None:
    again = decoded(*encoded(first), 1, first.settings)
    for name in ("top_tokens", "top_logp", "ref_top_logp"):
        assert np.array_equal(getattr(again, name), getattr(first, name))
        assert getattr(again, name).dtype == getattr(first, name).dtype
    bare = dataclasses.replace(first, top_tokens=None, top_logp=None, ref_top_logp=None)
    layout, record = encoded(bare)
    assert "top_" not in layout
    assert decoded(layout, record, 1, first.settings).top_tokens is None


@pytest.mark.parametrize(
    "changes",
    [
        {"top_logp": None},
        {"top_tokens": None},
        {"top_tokens": lambda step: step.top_tokens + 1},
        {"top_tokens": lambda step: step.top_tokens[:, :1]},
        {"top_tokens": lambda step: step.top_tokens.astype(float)},
        {"top_logp": lambda step: step.top_logp[:1]},
        {"ref_top_logp": lambda step: step.ref_top_logp[..., :2]},
        {"top_tokens": lambda step: np.where(step.top_tokens == step.tokens[..., None], -7, step.top_tokens)},
    ],
)
def test_alternatives_that_do_not_fit_together_are_refused(changes: dict[str, Any], first: Step) -> None:
    made = {name: make(first) if callable(make) else make for name, make in changes.items()}
    with pytest.raises(RunFileError, match="is inconsistent"):
        decoded(*encoded(dataclasses.replace(first, **made)), 1, first.settings)


def test_each_is_explained_as_one_of_the_likeliest_and_not_as_the_whole_distribution(first: Step) -> None:
    assert first.top_tokens is not None and first.top_logp is not None and first.ref_top_logp is not None
    place, token = 1, int(first.top_tokens[0, 1, 2])
    for passed, logp in ((0, first.top_logp[0, 0, place, 2]), (2, first.top_logp[1, 0, place, 2])):
        node = explain(first, Quantity("alternative", passed=passed, row=0, token=place, action=token))
        assert node.value == pytest.approx(np.exp(float(logp)))
        assert node.agrees and "5 likeliest" in node.note and "not the entire distribution" in node.note
    node = explain(first, Quantity("ref_alternative", row=0, token=place, action=token))
    assert node.value == pytest.approx(np.exp(float(first.ref_top_logp[0, place, 2]))) and node.agrees


def test_what_was_not_recorded_of_them_says_why(first: Step) -> None:
    assert first.top_tokens is not None
    known = set(first.top_tokens[0, 0].tolist())
    other = next(token for token in range(99) if token not in known)
    token = int(first.top_tokens[0, 0, 0])
    bare = dataclasses.replace(first, top_tokens=None, top_logp=None, ref_top_logp=None)
    unwatched = dataclasses.replace(first, ref_top_logp=None)
    for step, quantity, why in (
        (first, Quantity("alternative", passed=1, row=0, token=0, action=token), "before the update and after"),
        (first, Quantity("alternative", row=0, token=0, action=other), "not one of the"),
        (bare, Quantity("alternative", row=0, token=0, action=token), "were not recorded"),
        (unwatched, Quantity("ref_alternative", row=0, token=0, action=token), "reference"),
    ):
        node = explain(step, quantity)
        assert np.isnan(node.value) and why in node.note
