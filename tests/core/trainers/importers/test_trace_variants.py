"""Traces from other possible versions of the recorder, TRL or pyarrow agree like current ones. Of a trace of verl's own
actor there is every token that its loss saw, and the loss itself or the reason it is not recomputed.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grpo_core.errors import NotRecordedError, RunFileError
from grpo_core.objective import evaluate, importance_weight
from grpo_core.trainers.audit import audit
from grpo_core.trainers.conversion import convert
from grpo_core.trainers.health import diagnose
from grpo_core.trainers.health.grade import Grade
from grpo_core.trainers.importers import open_source, verl_settings
from grpo_core.trainers.importers.trace import OF_THE_LOSS, Trace
from grpo_core.trainers.recorded_series import numbers
from tests.core.trainers.trace_files import DATA, VERL, copied, redescribed

Change = Callable[[Path], None]


def rewritten(change: Callable[[Any], Any], **how: Any) -> Change:
    """Return a change that applies ``change`` to every Parquet file and writes it with other options."""

    def apply(folder: Path) -> None:
        for file in folder.rglob("step_*.parquet"):
            pq.write_table(change(pq.read_table(file)), file, **how)

    return apply


def without(*names: str) -> Change:
    return rewritten(lambda table: table.drop_columns([name for name in names if name in table.column_names]))


def in_place(name: str, values: Callable[[Any], Any]) -> Change:
    """Return a change that replaces the column ``name`` of every step by ``values`` of its table."""
    return rewritten(lambda table: table.set_column(table.column_names.index(name), name, values(table)))


def without_values(name: str) -> Change:
    return in_place(name, lambda table: pa.nulls(table.num_rows, table.schema.field(name).type))


def as_types(**types: Any) -> Change:
    def change(table: Any) -> Any:
        for name, kind in types.items():
            table = table.set_column(table.column_names.index(name), name, table[name].cast(kind))
        return table

    return rewritten(change)


def advantages(shaped: Callable[[float, int], Any]) -> Change:
    """Return a change that stores advantages in another form, computed from the number and the length of the
    completion.
    """

    def change(table: Any) -> Any:
        pairs = zip(table["advantage"].to_pylist(), table["completion_ids"].to_pylist(), strict=True)
        column = pa.array([shaped(advantage[0], len(ids)) for advantage, ids in pairs])
        return table.set_column(table.column_names.index("advantage"), "advantage", column)

    return rewritten(change)


def left_padded(table: Any) -> Any:
    rows = table.to_pydict()
    longest = max(map(len, rows["completion_ids"])) + 3
    for name, empty in (("completion_ids", 0), ("mask", False), ("old_logp", 0.0), ("ref_logp", 0.0)):
        rows[name] = [[empty] * (longest - len(row)) + row for row in rows[name]]
    for name in ("logp", "entropy"):
        rows[name] = [[[0.0] * (longest - len(use)) + use for use in row] for row in rows[name]]
    return pa.Table.from_pydict(rows, schema=table.schema)


def noted(*left_out: str) -> Change:
    """Return a change that leaves fields of the micro-batches out of the index."""

    def apply(folder: Path) -> None:
        for file in folder.rglob("index.jsonl"):
            lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
            for line in lines:
                line["micro_batches"] = [
                    {name: value for name, value in micro.items() if name not in left_out}
                    for micro in line["micro_batches"]
                ]
            file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")

    return apply


def described(*left_out: str, **changed: Any) -> Change:
    """Return a change to ``trace.json`` that leaves out or changes names in it and in the trainer's settings."""

    def apply(folder: Path) -> None:
        facts = json.loads((folder / "trace.json").read_text("utf-8"))
        facts["settings"] = {n: value for n, value in facts["settings"].items() if n not in left_out} | changed
        facts = {name: value for name, value in facts.items() if name not in left_out}
        (folder / "trace.json").write_text(json.dumps(facts), "utf-8")

    return apply


def normalised_then_summed(folder: Path) -> None:
    """Store the advantages of GDPO, and the setting that selects it."""

    def change(table: Any) -> Any:
        parts = np.array(table["rewards"].to_pylist()).reshape(-1, 4, 2)  # (P, G, K)
        scaled = (parts - parts.mean(axis=1, keepdims=True)) / (parts.std(axis=1, ddof=1, keepdims=True) + 1e-4)
        total = scaled.reshape(-1, 2).sum(axis=1)
        total = (total - total.mean()) / (total.std(ddof=1) + 1e-4)
        return table.set_column(table.column_names.index("advantage"), "advantage", pa.array([[x] for x in total]))

    rewritten(change)(folder)
    described(multi_objective_aggregation="normalize_then_sum")(folder)


LARGE = as_types(
    completion_ids=pa.large_list(pa.int64()),
    logp=pa.large_list(pa.large_list(pa.float64())),
    completion=pa.large_string(),
    mask=pa.list_(pa.int8()),
)
OPTIONAL = ("sampling_logp", "sampling_ratio", "off_policy_mask", "entropy_mask", "prompt_ids", "row", "entropy")
VARIANTS: dict[str, tuple[str, Change, int]] = {
    "large lists": ("grpo", LARGE, 20),
    "row groups": ("grpo", rewritten(lambda table: table, compression="zstd", row_group_size=3), 20),
    "optional columns missing": ("grpo", without(*OPTIONAL), 20),
    "no old log-probabilities": ("grpo", without("old_logp"), 20),
    "no texts": ("grpo", without("prompt", "completion"), 20),
    "no generation batches": ("grpo", without("generation"), 20),
    "left padding": ("grpo", rewritten(left_padded), 20),
    "an advantage a token": ("grpo", advantages(lambda advantage, length: [advantage] * length), 20),
    "an advantage, no list": ("grpo", advantages(lambda advantage, length: advantage), 20),
    "less of micro-batches": ("grpo", noted("num_items_in_batch", "accumulation", "entropy_coef", "aux_loss"), 20),
    "tokens of the batch not noted": ("two_processes", noted("num_items_in_batch"), 48),
    "no losses": ("grpo", noted("loss"), 16),
    "no reference": ("grpo", without("ref_logp"), 16),
    "no rewards": ("grpo", without("rewards"), 4),
    "no advantages": ("grpo", without("advantage"), 4),
    "fewer names than weights": ("grpo", described("reward_names"), 20),
    "less of the description": ("grpo", described("num_processes", "reward_weights", "eos_ids", "num_iterations"), 20),
    "settings of an older TRL": (
        "grpo",
        described("steps_per_generation", "importance_sampling_level", "delta", scale_rewards=True),
        20,
    ),
    "normalised, then summed": ("grpo", normalised_then_summed, 16),
}
"""Name -> trace, the change made to it, and how many numbers can then be compared."""


@pytest.mark.parametrize("name", VARIANTS)
def test_a_trace_of_another_version_agrees_in_everything_that_it_holds(name: str, tmp_path: Path) -> None:
    trace, change, compared = VARIANTS[name]
    folder = copied(trace, tmp_path)
    change(folder)
    run = Trace(folder)
    result = audit(run)
    if name == "normalised, then summed":  # the losses of the trace were computed with the other advantages
        assert [c.agrees for step in result.steps for c in step.comparisons if c.what == "advantage"] == [True] * 16
        return
    assert result.first is None and result.compared == compared
    assert all(finding.grade is Grade.NOTICE for finding in diagnose(run).findings)
    assert np.isfinite(numbers(run, 1)["length"]) and len(run.completions(1).rewards) >= 8


@pytest.mark.parametrize(
    ("name", "change"),
    [
        *((name, without(name)) for name in OF_THE_LOSS),
        *((name, without_values(name)) for name in ("mask", "part", "logp", "completion_ids")),
    ],
)
def test_a_trace_without_a_column_of_the_loss_opens_with_its_texts_and_says_what_it_lacks(
    name: str, change: Change, tmp_path: Path
) -> None:
    folder = copied("grpo", tmp_path)
    whole = Trace(folder).completions(1)
    change(folder)
    run = Trace(folder)
    with pytest.raises(NotRecordedError, match=f"lack the columns {name}, "):
        run.step(1)
    table, step = run.measured(1)
    assert step is None and table is not None and np.array_equal(table.rewards, whole.rewards)
    shown = run.completions(1)
    assert shown.completions == whole.completions and (shown.length is None) == (name == "completion_ids")
    assert all(finding.grade is Grade.NOTICE for finding in diagnose(run).findings)
    result = audit(run)
    assert result.compared == 0 and all(name in step.skipped for step in result.steps)
    converted = tmp_path / "converted.grpo"
    assert not convert(run, converted)
    with pytest.raises(NotRecordedError, match=name):
        open_source(converted).step(1)


CAP = 1.005
"""The threshold of the importance weights in the recorded run."""
FACTS = json.loads((DATA / VERL / "trace.json").read_text("utf-8"))["settings"]


def with_settings(folder: Path, changes: dict[str, Any], **facts: Any) -> Trace:
    """Copy the trace with these settings recorded for its actor, and these facts beside them."""
    return Trace(redescribed(copied(VERL, folder), changes, **facts))


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
    result = audit(with_settings(tmp_path, {"clip_ratio_c": 3.0}))
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
    run = with_settings(tmp_path, changes)
    with pytest.raises(NotRecordedError, match=words):
        run.step(1)
    found = run.completions(1)
    assert len(found.completions) == 16 and np.isfinite(found.rewards).all() and len(run.notes) == 1
    assert not audit(run).compared


def test_weights_of_single_tokens_under_a_ratio_of_the_completion_are_refused(tmp_path: Path) -> None:
    run = with_settings(tmp_path, {"policy_loss.loss_mode": "gspo"})
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
    result = audit(with_settings(tmp_path, {}, num_generations=2))
    assert result.agrees and {c.what for step in result.steps for c in step.comparisons} == {"loss"}


@pytest.mark.parametrize("missing", ["clip_ratio", "loss_agg_mode", "policy_loss.loss_mode"])
def test_a_missing_setting_is_named(missing: str, tmp_path: Path) -> None:
    with pytest.raises(RunFileError, match=missing):
        with_settings(tmp_path, {}, settings={name: value for name, value in FACTS.items() if name != missing})


def test_a_trainer_that_no_recorder_knows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunFileError, match="trainer = other"):
        with_settings(tmp_path, {}, trainer="other")
