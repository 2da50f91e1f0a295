"""Traces from other possible versions of the recorder, TRL or pyarrow agree like current ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grpo_core.errors import NotRecordedError, RunFileError
from grpo_core.trainers.audit import audit
from grpo_core.trainers.conversion import convert
from grpo_core.trainers.health import diagnose
from grpo_core.trainers.health.grade import Grade
from grpo_core.trainers.importers import open_source
from grpo_core.trainers.importers.trace import OF_THE_LOSS, Trace
from grpo_core.trainers.recorded_series import numbers
from tests.core.trainers.trace_files import copied

Change = Callable[[Path], None]


def rewritten(change: Callable[[Any], Any], **how: Any) -> Change:
    """Return a change that applies ``change`` to every Parquet file and writes it with other options."""

    def apply(folder: Path) -> None:
        for file in folder.rglob("step_*.parquet"):
            pq.write_table(change(pq.read_table(file)), file, **how)

    return apply


def without(*names: str) -> Change:
    return rewritten(lambda table: table.drop_columns([name for name in names if name in table.column_names]))


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


def test_a_way_to_scale_rewards_that_is_unknown_is_named(tmp_path: Path) -> None:
    folder = copied("grpo", tmp_path)
    described(scale_rewards="by_the_moon")(folder)
    with pytest.raises(RunFileError, match=r"by_the_moon.*group, batch, none"):
        Trace(folder)


@pytest.mark.parametrize("name", OF_THE_LOSS)
def test_a_trace_without_a_column_of_the_loss_opens_with_its_texts_and_says_what_it_lacks(
    name: str, tmp_path: Path
) -> None:
    folder = copied("grpo", tmp_path)
    whole = Trace(folder).completions(1)
    without(name)(folder)
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
