"""A trace of verl's own actor: every token that its loss saw, and the loss itself or the reason it is not
recomputed.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grpo_core.errors import NotRecordedError, RunFileError
from grpo_core.objective import evaluate, importance_weight
from grpo_core.trainers.audit import audit
from grpo_core.trainers.importers import open_source, verl_settings
from grpo_core.trainers.importers.trace import Trace
from tests.core.trainers.trace_files import DATA, VERL, copied

CAP = 1.005
"""The threshold of the importance weights in the recorded run."""
FACTS = json.loads((DATA / VERL / "trace.json").read_text("utf-8"))["settings"]


def with_settings(folder: Path, changes: Mapping[str, Any]) -> Path:
    """Copy the trace with these settings recorded for its actor."""
    copy = copied(VERL, folder)
    facts = json.loads((copy / "trace.json").read_text("utf-8"))
    facts["settings"] |= changes
    (copy / "trace.json").write_text(json.dumps(facts), "utf-8")
    return copy


def test_every_loss_of_both_processes_is_recomputed() -> None:
    result = audit(Trace(DATA / VERL))
    losses = [c for step in result.steps for c in step.comparisons if c.what == "loss"]
    assert result.agrees and len(losses) == 32 and not any(step.skipped for step in result.steps)
    assert max(c.difference for c in losses) < 1e-7 < max(abs(c.theirs) for c in losses)


def test_tokens_stand_with_their_texts_and_a_tools_words_do_not_count() -> None:
    run = open_source(DATA / VERL)
    step, table, words = run.step(1), run.completions(1), run.vocabulary
    assert step.present is not None
    masked = step.present & ~step.mask
    assert {words[int(token)] for token in step.tokens[masked]} == {"="} and masked.sum() == 16
    for tokens, there, text in zip(step.tokens, step.present, table.completions, strict=True):
        assert text == "".join(words[int(token)] for token in tokens[there])
    assert set(np.bincount(step.group)) == {4} and run.settings.recorded.source == "verl 0.9.1"


def test_weights_are_the_truncated_ratio_of_the_trainer_to_the_sampler() -> None:
    step = Trace(DATA / VERL).step(2)
    assert step.gate is not None and step.sampling_logp is not None
    expected = importance_weight(CAP, step.old_logp, step.sampling_logp, step.mask)
    np.testing.assert_allclose(step.gate[0][step.mask], expected[step.mask], rtol=1e-5)
    assert (step.gate[0][step.mask] == np.float32(CAP)).any() and (step.gate[0][step.mask] < 1).any()


def test_a_bound_that_the_actor_did_not_have_departs(tmp_path: Path) -> None:
    """verl's own figures show that the dual clip of 1.5 acted; with the default of 3 the losses differ."""
    result = audit(Trace(with_settings(tmp_path, {"clip_ratio_c": 3.0})))
    assert result.first is not None and result.first[1].what == "loss"
    assert "The ratio was bounded at 1.5 before the minimum (delta)." in result.explanations


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"policy_loss.loss_mode": "clip_cov"}, "“clip_cov” cannot be recomputed"),
        ({"policy_loss.loss_mode": "cispo"}, "clip_ratio_low is at least 1"),
        ({"loss_agg_mode": "median"}, "“median” is unknown"),
        ({"kl_loss_type": "k3+"}, "kl_loss_type “k3\\+”"),
        ({"clip_ratio_c": 1.1}, "within the clip range"),
        ({"policy_loss.loss_mode": "sapo", "loss_agg_mode": "token-mean"}, "two means"),
        (
            {"policy_loss.loss_mode": "bypass_mode", "policy_loss.rollout_correction.rollout_rs": "token_k1"},
            "does not keep the mask",
        ),
    ],
)
def test_a_loss_that_is_none_of_ours_is_named_and_the_completions_are_shown(
    changes: dict[str, Any], words: str, tmp_path: Path
) -> None:
    run = Trace(with_settings(tmp_path, changes))
    with pytest.raises(NotRecordedError, match=words):
        run.step(1)
    found = run.completions(1)
    assert len(found.completions) == 16 and np.isfinite(found.rewards).all() and len(run.notes) == 1
    assert not audit(run).compared


def test_weights_of_single_tokens_under_a_ratio_of_the_completion_are_refused(tmp_path: Path) -> None:
    run = Trace(with_settings(tmp_path, {"policy_loss.loss_mode": "gspo"}))
    with pytest.raises(NotRecordedError, match="its own importance weight"):
        run.step(1)


@pytest.mark.parametrize(
    ("mode", "of_a_mini_batch", "alone"),
    [
        ("token-mean", 0.375, 0.46875),
        ("token-sum", 7.5, 3.75),
        ("seq-mean-token-sum", 0.9375, 1.25),
        ("seq-mean-token-mean", 0.359375, 0.47916667),
        ("seq-mean-token-sum-norm", 0.234375, 0.3125),
    ],
)
def test_each_mean_is_that_of_verls_agg_loss(mode: str, of_a_mini_batch: float, alone: float) -> None:
    """The numbers come from verl 0.9.1's ``agg_loss`` for this matrix: two processes and a mini-batch of 8
    completions with 20 tokens, and a single micro-batch.
    """
    mask = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 0]], bool)
    each = np.array([[0.5, -1, 2, 0.25], [1.5, -0.5, 9, 9], [3, 9, -2, 9], [9, 9, 9, 9]])
    settings = FACTS | {"loss_agg_mode": mode, "use_kl_loss": False, "entropy_coeff": 0.0}
    objective = dataclasses.replace(verl_settings.objective_of(settings), surrogate="log_prob", dual_clip=None)
    for noted, processes, expected in (
        ({"num_items_in_batch": 20.0, "global_batch_size": 8.0, "width": 4}, 2, of_a_mini_batch),
        ({"width": 4}, 1, alone),
    ):
        divisor = verl_settings.denominator_of(settings, noted, rows=3, tokens=8)
        terms = evaluate(objective, -each, -each, np.ones(4), mask, denominator=divisor)
        assert terms.loss * processes == pytest.approx(expected, rel=1e-6)


def test_a_restart_counts_verls_steps_and_not_its_optimizer_steps(tmp_path: Path) -> None:
    """Each update is four optimizer steps but one step of verl's: a restart that begins at 3 has not repeated any."""
    folder = copied(VERL, tmp_path)
    for rank in ("rank0", "rank1"):
        first, again = folder / rank / "attempt0", folder / rank / "attempt1"
        again.mkdir()
        line = json.loads((first / "index.jsonl").read_text("utf-8").splitlines()[1])
        (again / line["file"]).write_bytes((first / line["file"]).read_bytes())
        (again / "index.jsonl").write_text(json.dumps(line | {"global_step": 3}) + "\n", "utf-8")
    run = Trace(folder)
    assert list(run.labels) == [1, 2, 3] and not run.notes
    assert [report.numbers["loss"] for report in run.reports(2)] == [pytest.approx(-0.0630352)]


def test_advantages_of_more_outputs_than_completions_are_taken_as_recorded(tmp_path: Path) -> None:
    """Several outputs of one session share its last one's advantage, so the mean over all rows differs."""
    folder = copied(VERL, tmp_path)
    facts = json.loads((folder / "trace.json").read_text("utf-8"))
    (folder / "trace.json").write_text(json.dumps(facts | {"num_generations": 2}), "utf-8")
    result = audit(Trace(folder))
    assert result.agrees and {c.what for step in result.steps for c in step.comparisons} == {"loss"}


@pytest.mark.parametrize("missing", ["clip_ratio", "loss_agg_mode", "policy_loss.loss_mode"])
def test_a_missing_setting_is_named(missing: str, tmp_path: Path) -> None:
    folder = copied(VERL, tmp_path)
    facts = json.loads((folder / "trace.json").read_text("utf-8"))
    del facts["settings"][missing]
    (folder / "trace.json").write_text(json.dumps(facts), "utf-8")
    with pytest.raises(RunFileError, match=missing):
        Trace(folder)


def test_a_trainer_that_no_recorder_knows_is_refused(tmp_path: Path) -> None:
    folder = copied(VERL, tmp_path)
    facts = json.loads((folder / "trace.json").read_text("utf-8"))
    (folder / "trace.json").write_text(json.dumps(facts | {"trainer": "other"}), "utf-8")
    with pytest.raises(RunFileError, match="trainer = other"):
        Trace(folder)
