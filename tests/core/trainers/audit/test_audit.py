"""The audit of recorded runs: healthy runs agree with their recomputation; planted faults are found and named; a
recorded update is compared with its corrected version.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from grpo_core.claims.pushes import Pair
from grpo_core.commands.cli import main
from grpo_core.trainers.audit import audit
from grpo_core.trainers.audit.audit import Auditing
from grpo_core.trainers.audit.put_right import PutRight, first_named, put_right
from grpo_core.trainers.audit.report import as_text, sides
from grpo_core.trainers.changes.numbers import Update
from grpo_core.trainers.claims.causes import Done, Explained
from grpo_core.trainers.claims.put_right import PUT_RIGHT, Righted
from grpo_core.trainers.importers.trace import Trace
from tests.core.claims.drawn import others
from tests.core.trainers.audit.planted import Planted
from tests.core.trainers.audit.test_causes import IN_LOSS, RECORDED
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


FAULTS = {
    **{f"loss: {name}": Planted(used=IN_LOSS[name][0]) for name in list(IN_LOSS)[::3]},
    **{f"recorded: {name}": Planted(recorded=RECORDED[name][0]) for name in list(RECORDED)[::3]},
    "loss x 0.5": Planted(losing=0.5),
}


def found(run: Planted) -> tuple[Explained | None, PutRight | None, Update | None]:
    """Return the claim that names the cause, its comparison, and the update being compared."""
    result = audit(run)
    claim = first_named(result.causes)
    if claim is None:
        return None, result.put_right, None
    position = next(s.position for s in result.steps if any(c.what == claim.what for c in s.departing))
    return claim, result.put_right, Auditing(run).read(position)


def sides_of(claim: Explained, update: Update, one: PutRight) -> Pair:
    """Return both records, built without the code under test: the step as planted, and the step that its settings
    imply.
    """
    passed = one.number - 1
    if claim.what == "loss":
        stood = claim.stood(update, passed)
        assert stood is not None
        return Pair(ran=stood, other=update.step, passes=(passed, passed))
    return Pair(ran=update.step, other=dataclasses.replace(update.step, advantage=None), passes=(passed, passed))


@pytest.mark.parametrize("name", FAULTS)
def test_both_sides_of_a_named_fault_are_told_and_anything_else_is_refused(name: str) -> None:
    claim, one, update = found(FAULTS[name])
    if claim is None or update is None:
        assert one is None, "nothing is put right that is not named"
        return
    assert one is not None and one.rows and "→" in "".join(sides(one))
    pair, chance = sides_of(claim, update, one), np.random.default_rng(0)
    for said in one.claims:
        assert said.check(pair)
        assert not any(other.check(pair) for other in others(said, chance))
    for moved in one.moved:
        ran, other = (-each[moved.row - 1, moved.token - 1] for each in pair.tokens)
        assert (moved.recorded, moved.righted) == pytest.approx((ran, other), rel=1e-6)
    assert one.moved or claim.done[0].cause in ("added_length", "loss_added")


@pytest.mark.parametrize("name", ["sign turned", "no clip", "KL left out"])
def test_the_recorded_side_has_the_trainers_loss_and_the_other_one_that_of_the_settings(name: str) -> None:
    _, one, update = found(Planted(used=IN_LOSS[name][0]))
    assert one is not None and update is not None and update.theirs is not None
    loss = next(row for row in one.rows if row.name == "loss")
    assert loss.ran == pytest.approx(np.nansum(update.theirs[one.number - 1]) / update.processes, rel=1e-5)
    assert loss.other != pytest.approx(loss.ran, rel=1e-3)


def test_every_kind_is_told_by_one_of_the_faults() -> None:
    told: set[str] = set()
    for run in FAULTS.values():
        _, one, _ = found(run)
        told |= {claim.kind for claim in one.claims} if one is not None else set()
    assert told == set(PUT_RIGHT)


def test_a_cause_that_cannot_be_applied_is_not_put_right() -> None:
    run: Any = Planted(used=IN_LOSS["sign turned"][0])
    claim = Explained(what="loss", done=(Done(cause="advantage_stale"),))
    update = Auditing(run).read(1)
    nothing = put_right(claim, update, 1)
    assert nothing is None or nothing.moved == ()


def test_an_agreeing_run_has_nothing_to_put_right() -> None:
    result = audit(Planted())
    assert result.put_right is None and first_named(result.causes) is None
    assert Righted.of("no_push_turned", all=3).words() == "Put right, none of 3 tokens is pushed the other way."
