"""The audit of recorded runs: healthy runs agree with their recomputation; planted faults are found and named."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from grpo_core.commands.cli import main
from grpo_core.record import Step
from grpo_core.trainers.audit import audit
from grpo_core.trainers.audit.report import as_text
from grpo_core.trainers.importers.trace import Trace
from tests.core.trainers.importers.test_trace_variants import Change, as_types, rewritten
from tests.core.trainers.trace_files import DATA, FAULTY, HEALTHY, VERL, copied


@pytest.mark.parametrize("name", [*HEALTHY, VERL])
def test_a_healthy_run_agrees_throughout(name: str) -> None:
    result = audit(Trace(DATA / name))
    assert result.agrees and result.first is None and not result.explanations and not result.suspicions
    worst = result.worst("loss")
    assert worst is not None and worst.difference < worst.allowed / 4


@pytest.mark.parametrize(("name", "sentence"), FAULTY.items())
def test_a_planted_fault_is_found_and_named(name: str, sentence: str) -> None:
    result = audit(Trace(DATA / name))
    assert not result.agrees and sentence in result.explanations


class Tampered(Trace):
    """A trace whose losses come from another objective, as a faulty trainer would have logged them."""

    change: Callable[[Step], Step] = staticmethod(lambda step: step)

    def losses(self, position: int) -> np.ndarray | None:
        from grpo_core import recompute

        known, step = super().losses(position), self.change(self.step(position))
        assert known is not None
        for n in range(step.passes):
            parts = recompute.part_losses(step, n) * self.processes
            known[n, : len(parts)] = np.where(np.isnan(known[n, : len(parts)]), np.nan, parts)
        return known


def _under(**changes: Any) -> Callable[[Step], Step]:
    def changed(step: Step) -> Step:
        settings = step.settings.replace({f"objective.{name}": value for name, value in changes.items()})
        return dataclasses.replace(step, settings=settings)

    return changed


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_under(clip_low=1.0, clip_high=1e6), "Nothing was clipped"),
        (_under(beta=0.0, kl_importance=False), "KL term was left out"),
        (_under(kl_importance=False), "not multiplied by the ratio"),
        (_under(kl="k2"), "estimator was k2"),
        (_under(level="sequence"), "whole completions"),
        (lambda step: dataclasses.replace(step, advantage=-step.advantage), "opposite sign"),
    ],
)
def test_each_alternative_is_named_where_it_is_what_happened(change: Callable[[Step], Step], words: str) -> None:
    run = Tampered(DATA / "grpo")
    run.change = change
    result = audit(run)
    assert not result.agrees and any(words in sentence for sentence in result.explanations)


def test_a_constant_factor_is_named_where_nothing_else_fits() -> None:
    class Doubled(Trace):
        def losses(self, position: int) -> np.ndarray | None:
            known = super().losses(position)
            return None if known is None else known * 3

    result = audit(Doubled(DATA / "two_processes"))
    assert any("3 times" in sentence for sentence in result.explanations)


def test_where_a_process_is_missing_advantages_alone_are_compared(tmp_path: Path) -> None:
    folder = copied("two_processes", tmp_path)
    index = folder / "rank1/attempt0/index.jsonl"
    index.write_text("".join(index.read_text().splitlines(keepends=True)[:1]))
    result = audit(Trace(folder))
    assert result.agrees and "1" in result.steps[1].skipped
    assert {c.what for c in result.steps[1].comparisons} == {"advantage"}


@pytest.mark.parametrize(("name", "status"), [("grpo", 0), ("fault_clip", 1)])
def test_the_command_exits_by_what_it_found(name: str, status: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(DATA / name)]) == status
    text = capsys.readouterr().out
    assert ("Everything agrees" in text) == (status == 0)
    assert main(["audit", str(DATA / name), "--json"]) == status
    assert json.loads(capsys.readouterr().out)["agrees"] == (status == 0)


def test_a_run_that_is_none_ends_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(tmp_path)]) == 2
    assert "not a recorded run" in capsys.readouterr().err


FLOAT16_LOGP = as_types(
    logp=pa.list_(pa.list_(pa.float16())),
    old_logp=pa.list_(pa.float16()),
    ref_logp=pa.list_(pa.float16()),
    entropy=pa.list_(pa.list_(pa.float16())),
)


def with_decimals(folder: Path) -> None:
    """Round every log-probability and advantage in the trace to four decimals."""

    def rounded(value: Any) -> Any:
        if isinstance(value, list):
            return [rounded(one) for one in value]
        return None if value is None else round(value, 4)

    def change(table: Any) -> Any:
        for name in {"logp", "old_logp", "ref_logp", "advantage"} & {*table.column_names}:
            kind = table.schema.field(name).type
            column = pa.array(rounded(table[name].to_pylist()), kind)
            table = table.set_column(table.column_names.index(name), name, column)
        return table

    rewritten(change)(folder)


@pytest.mark.parametrize(("keep", "precision"), [(FLOAT16_LOGP, "float16"), (with_decimals, "4 decimals")])
@pytest.mark.parametrize("name", HEALTHY)
def test_a_file_of_few_digits_agrees_to_its_precision(name: str, keep: Change, precision: str, tmp_path: Path) -> None:
    folder = copied(name, tmp_path)
    keep(folder)
    run = Trace(folder)
    result = audit(run)
    assert result.agrees and result.precision is not None and result.precision.name == precision
    text = as_text(run, result)
    assert "Everything agrees to within the file's precision." in text and f"as {precision}" in text


@pytest.mark.parametrize("keep", [FLOAT16_LOGP, with_decimals])
@pytest.mark.parametrize(("name", "sentence"), FAULTY.items())
def test_a_planted_fault_is_named_in_a_file_of_few_digits(
    name: str, sentence: str, keep: Change, tmp_path: Path
) -> None:
    folder = copied(name, tmp_path)
    keep(folder)
    result = audit(Trace(folder))
    assert not result.agrees and sentence in result.explanations
