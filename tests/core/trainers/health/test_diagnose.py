"""Unhealthy runs of the real trainer are diagnosed, and healthy ones pass."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import xml.etree.ElementTree as ET
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grpo_core.claims.claim import Kind
from grpo_core.commands.cli import main
from grpo_core.config import Objective
from grpo_core.errors import NotRecordedError
from grpo_core.foreign.recording import Completions
from grpo_core.objective import evaluate, gradient
from grpo_core.surrogates import SURROGATES
from grpo_core.trainers.claims.faults import FAULTS, Fault
from grpo_core.trainers.health import CHECKS, Diagnosis, Evidence, Finding, diagnose
from grpo_core.trainers.health.check import Check, Measure, Quantity, Verdict, lasting
from grpo_core.trainers.health.grade import Grade
from grpo_core.trainers.health.report import as_html, as_json, as_text
from grpo_core.trainers.health.update import Update
from grpo_core.trainers.importers import open_source
from grpo_core.trainers.importers.trace import Trace
from tests.core.trainers.health.made import Tables, completions, in_parts, recorded, with_reports
from tests.core.trainers.sources import DISEASED, SOURCES, source_path
from tests.core.trainers.trace_files import DATA, HEALTHY

FINDINGS = {
    "answer_never_found": "dead_groups_wrong",
    "clip_too_narrow": "clip_saturation",
    "cut_short": "truncation",
    "dropout": "first_pass_differs",
    "ever_longer": "length_hack",
    "kl_explodes": "kl_few_tokens",
    "part_constant": "reward_part_constant",
    "parts_fight": "reward_parts_fight",
    "rate_too_high": "entropy_collapse",
    "reward_constant": "dead_groups_right",
    "reward_infinite": "non_finite",
    "reward_jackpot": "advantage_outliers",
}
"""Run of ``benchmarks/trl/diseases.py`` -> the check that must name its problem."""


def is_found(name: str, update: Update, count: int = 1) -> bool:
    """Return whether a check finds something that has not ended in ``count`` such updates."""
    measure = CHECKS[name].measure(update)
    assert measure is not None
    found = CHECKS[name].findings(name, [measure] * count, update.settings)
    return bool(found) and not found[-1].ended


def problems(result: Diagnosis) -> list[str]:
    """Return the checks graded worse than a notice. Even healthy tiny runs have notices, because most of their
    answers are truncated.
    """
    return [finding.check for finding in result.findings if finding.grade is not Grade.NOTICE]


@pytest.mark.parametrize("name", FINDINGS)
def test_a_diseased_run_is_named_with_evidence_and_nothing_else_is(name: str) -> None:
    run = Trace(DISEASED / name)
    result = diagnose(run)
    finding = {finding.check: finding for finding in result.findings}[FINDINGS[name]]
    assert finding.evidence and finding.change and finding.source
    assert finding.began in run.labels and all(one.step in run.labels for one in finding.evidence)
    assert name != "dropout" or "the precision of this run explains 1e-05" in finding.sentence
    assert name in ("kl_explodes", "rate_too_high") or problems(result) == [FINDINGS[name]]


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_run_gives_no_warning_and_nothing_worse(name: str) -> None:
    assert problems(diagnose(Trace(DATA / name))) == []


@pytest.mark.parametrize("name", SOURCES)
def test_a_healthy_source_of_texts_gives_no_finding_and_says_what_was_not_looked_at(name: str, tmp_path: Path) -> None:
    result = diagnose(open_source(source_path(name, tmp_path)))
    assert result.findings == () and not result.unreadable
    skipped = {one.check: one.why for one in result.not_looked_at}
    assert "kl_few_tokens" in skipped and all(skipped.values())
    assert len(result.looked_at) + len(skipped) == len(CHECKS)


def test_a_fault_of_the_rewards_is_seen_in_texts_alone() -> None:
    found = {one.check: one.sentence for one in diagnose(Tables([completions([0.0] * 4 + [1.0] * 4)] * 4)).findings}
    assert set(found) == {"dead_groups_right", "dead_groups_wrong"} and "8 groups" in found["dead_groups_right"]


@pytest.mark.parametrize(("lost", "named"), [(0, False), (1, False), (11, True), (160, True), (200, False)])
def test_rewards_that_are_missing_are_counted_and_placed(lost: int, named: bool) -> None:
    """53 of 960 rewards were NaN without a finding; 1 in 200 is no pattern, and a source without any rewards
    differs.
    """
    rewards = np.tile([0.0, 1.0, 0.5, 0.25], 50)
    rewards[len(rewards) - lost :] = np.nan
    tables = [completions(part) for part in rewards.reshape(25, 8)]
    found = {finding.check: finding for finding in diagnose(Tables(tables)).findings}
    assert ("rewards_missing" in found) is named
    if named:
        finding, began = found["rewards_missing"], 25 - -(-lost // 8) + 1
        assert finding.sentence == (
            f"{lost / 200:.1%} of the rewards are missing, {lost} of 200: the first at step {began}."
        )
        assert finding.began == began
        assert finding.grade == "warning"
        assert finding.evidence[0].row is not None


def test_groups_that_died_because_all_was_cut_off_say_so() -> None:
    dead = completions([0.0] * 8, truncated=np.ones(8, bool))
    findings = {finding.check: finding.sentence for finding in diagnose(Tables([dead] * 4)).findings}
    assert "cut off by a limit" in findings["dead_groups_wrong"] and "truncation" in findings


def test_a_further_branch_does_not_make_a_group_of_one_reward() -> None:
    alone = completions([1.0, 1.0, 0.5, 0.5], counted=np.array([True, False, True, False]))
    assert diagnose(Tables([alone] * 8)).findings == ()


def moved(first: float, second: float, weights: tuple[float, float] = (1.0, 0.0)) -> Completions:
    """Return eight completions whose two rewards vary around these means."""
    around = np.linspace(-0.05, 0.05, 8)
    return in_parts(np.stack([first + around, second - around], axis=1), weights, ("length", "right"))


def test_a_reward_that_rises_while_a_watched_one_falls_is_named_from_where_it_does() -> None:
    run = Tables([moved(0.1 * i, 0.9 if i < 6 else 0.2 + 0.001 * i) for i in range(15)])
    finding = next(f for f in diagnose(run).findings if f.check == "reward_exploited")
    assert finding.began == 7 and "“length”" in finding.sentence and "“right” fell" in finding.sentence


@pytest.mark.parametrize(
    "tables",
    [
        [moved(0.1 * i, 0.05 * i) for i in range(15)],
        [moved(0.5 + 0.3 * (-1) ** i, 0.5 - 0.3 * (-1) ** i) for i in range(15)],
        [moved(0.1 * i, -0.1 * i, (1.0, -1.0)) for i in range(15)],
        [moved(-0.1 * i, 0.1 * i) for i in range(15)],
    ],
    ids=["both rise", "noise", "a penalty", "what is paid falls"],
)
def test_rewards_that_are_not_earned_at_the_cost_of_another_are_left_alone(tables: list[Completions]) -> None:
    assert "reward_exploited" not in {finding.check for finding in diagnose(Tables(tables)).findings}


def under(step: Any, **changes: Any) -> Any:
    return step.settings.replace({f"objective.{name}": value for name, value in changes.items()})


@pytest.mark.parametrize(("mean", "named"), [(19.9, True), (50.0, False)])
def test_a_logged_share_of_cut_off_completions_is_held_against_their_lengths(mean: float, named: bool) -> None:
    log = {"completions/clipped_ratio": 1.0, "completions/mean_length": mean, "completions/max_length": 64.0}
    run = with_reports(Tables([completions()] * 4), log)
    (finding,) = [finding for finding in diagnose(run).findings if finding.check == "truncation"]
    assert ("a limit on their tokens did not end most of these" in finding.sentence) is named
    assert ("are cut off by a limit" in finding.sentence) is not named


@pytest.mark.parametrize("strict", [True, False])
def test_right_answers_that_a_scorer_misses_are_shown(strict: bool) -> None:
    texts = ("So 3 + 4 = 7", "#### 7", "7", "\\boxed{7}", "<answer>7</answer>", "the answer is: 7.", "8", "17")
    rewards = [float(not strict and n < 6) for n in range(8)]
    table = completions(rewards, answers=("3 + 4 = 7\n#### 7",) * 8)
    found = diagnose(Tables([dataclasses.replace(table, completions=texts)] * 3)).findings
    shown = [finding for finding in found if finding.check == "answer_unrewarded"]
    assert [finding.sentence for finding in shown] == strict * [
        "18 of the 24 completions with the lowest reward, 0, end on the right answer to their prompt."
    ]
    assert all(len(finding.evidence) == 5 and finding.evidence[0].what.endswith("#### 7") for finding in shown)


@pytest.mark.parametrize("rewards", [(0.0, 0.0), (0.3, 0.3), (0.1, 0.7)])
@pytest.mark.parametrize("same", [True, False])
def test_groups_that_are_copies_of_one_text_are_named_as_such(same: bool, rewards: tuple[float, float]) -> None:
    table = completions(np.repeat(rewards, 4))
    table = dataclasses.replace(table, prompts=tuple("aaaabbbb"), completions=("x",) * 8 if same else table.completions)
    first = diagnose(Tables([table] * 4)).findings[0]
    assert ("the same text" in first.sentence) == ("seed" in first.change) == same


def test_a_share_that_the_trainer_logs_is_said_to_be_logged_beside_completions_without_it() -> None:
    run = with_reports(Tables([completions()] * 4), {"completions/clipped_ratio": 0.9})
    (finding,) = [finding for finding in diagnose(run).findings if finding.check == "truncation"]
    assert all(one.what == "the trainer logs that 90% of the completions are cut off" for one in finding.evidence)


@pytest.mark.parametrize(("cap", "named"), [(0.2, True), (5.0, False)])
def test_a_cap_below_one_is_named(cap: float, named: bool) -> None:
    settings = under(Trace(DATA / "grpo").step(1), surrogate="cispo", clip_high=cap)
    assert is_found("cap_below_one", Update(label=1, settings=settings)) == named


@pytest.mark.parametrize(("clip", "nearer", "named"), [(0.5, 1.0, True), (3e-4, 1.0, False), (0.5, 1e-4, False)])
def test_a_clip_range_that_no_ratio_of_a_completion_reaches_is_named_once_there_is_enough(
    clip: float, nearer: float, named: bool
) -> None:
    step = Trace(DATA / "grpo").step(1)
    step = dataclasses.replace(step, logp=step.logp * nearer, old_logp=step.old_logp * nearer)
    settings = under(step, level="sequence", clip_low=clip, clip_high=clip)
    update = Update(label=1, settings=settings, step=dataclasses.replace(step, settings=settings))
    assert not is_found("clip_never_reached", update, 7)
    assert is_found("clip_never_reached", update, 8) == named


def test_the_beginning_is_where_something_stays_wrong() -> None:
    measures = [Measure(label=10 * i, value=v) for i, v in enumerate([1, 0, 0, 0, 0, 0, 1, 1, 0, 1, 1])]
    assert lasting(measures, lambda m, _: m.value > 0, 2)[0].label == 60
    assert lasting(measures[:5], lambda m, _: m.value > 0, 2) == []


def test_an_unscored_completion_and_a_token_that_the_sampler_did_not_score_are_no_faults() -> None:
    step = Trace(DATA / "grpo").step(1)
    sampled = np.where(np.arange(step.mask.shape[1]) % 2, np.nan, step.logp[0])
    update = Update(
        label=1,
        settings=step.settings,
        step=dataclasses.replace(step, sampling_logp=sampled),
        table=completions([np.nan, 1.0, 0.0, 0.5] * 2, advantage=np.array([np.nan, 1.0, -1.0, 0.0] * 2)),
    )
    measure = CHECKS["non_finite"].measure(update)
    assert measure is not None and measure.value == 0
    gap = CHECKS["sampler_differs"].measure(update)
    assert gap is not None and gap.value < 1e-6


def test_a_sampler_of_another_temperature_is_named() -> None:
    step = Trace(DATA / "grpo").step(1)
    update = Update(label=1, settings=step.settings, step=dataclasses.replace(step, sampling_logp=step.logp[0] * 1.2))
    assert is_found("sampler_differs", update)


@pytest.mark.parametrize("check", ["first_pass_differs", "kl_few_tokens"])
@pytest.mark.parametrize(("vocabulary", "name"), [(tuple("abcdefgh") * 20, "“{text}”"), ((), "‹{number}›")])
def test_evidence_names_a_token_by_its_text_where_that_is_known(
    check: str, vocabulary: tuple[str, ...], name: str
) -> None:
    step = Trace(DATA / "grpo").step(1)
    logp = step.logp.copy()
    logp[:, 1, 2] -= 5.0
    step = dataclasses.replace(step, logp=logp, ref_logp=step.logp[-1], old_logp=step.logp[0])
    measure = CHECKS[check].measure(Update(label=1, settings=step.settings, step=step, vocabulary=vocabulary))
    assert measure is not None
    first, number = measure.evidence[0], int(step.tokens[1, 2])
    assert (first.row, first.token) == (2, 3)
    assert name.format(text="abcdefgh"[number % 8], number=number) in first.what


@pytest.mark.parametrize(("bits", "named"), [(32, True), (16, False)])
def test_what_counts_as_rounding_follows_the_precision_of_the_run(bits: int, named: bool) -> None:
    step = Trace(DATA / "grpo").step(1)
    trainer = json.loads(step.settings.recorded.trainer_settings) | {"bf16": bits == 16}
    task = dataclasses.replace(step.settings.recorded, trainer_settings=json.dumps(trainer))
    settings = dataclasses.replace(step.settings, task=task)
    apart = dataclasses.replace(step, old_logp=step.logp[0] + np.where(step.mask, 0.03, 0.0))
    assert is_found("first_pass_differs", Update(label=1, settings=settings, step=apart)) == named


def test_the_page_escapes_what_came_from_outside_and_loads_nothing() -> None:
    nasty = '<img src="http://x/y.png" onerror=alert(1)>&"'
    finding = Finding(
        check="truncation",
        title="t",
        grade=Grade.SERIOUS,
        began=1,
        what=(Fault.of("between", name=nasty),),
        evidence=(Evidence(step=1, what=nasty, quote=nasty),),
        change=nasty,
        source=nasty,
    )
    source = Tables([])
    source.title, source.notes = nasty, [nasty]
    page = as_html(source, Diagnosis(updates=1, findings=(finding,), unreadable=(nasty,)))
    assert "<img" not in page and "&lt;img" in page
    assert "src=" not in page.replace("src=&quot;", "") and "<script" not in page and "default-src 'none'" in page


@pytest.mark.parametrize(("std", "said"), [("sample", True), ("batch", False)])
def test_a_part_that_differs_between_prompts_is_not_said_to_add_nothing_where_the_batch_divides(
    std: str, said: bool
) -> None:
    parts = np.stack([np.repeat([0.0, 3.0], 4), np.tile([0.0, 1.0], 4)], axis=1)
    table = completions(parts.sum(axis=1), reward_parts=parts, reward_names=("level", "right"))
    (finding,) = diagnose(Tables([table] * 4, recorded(std=std))).findings
    assert finding.check == "reward_part_constant" and ("adds nothing" in finding.sentence) == said


def test_json_and_text_say_the_same_findings() -> None:
    run = Trace(DISEASED / "parts_fight")
    result = diagnose(run)
    plain = json.loads(json.dumps(as_json(run, result)))
    assert plain["serious"] and [f["severity"] for f in plain["findings"]] == ["serious", "notice"]
    assert [f["check"] for f in plain["findings"]] == ["reward_parts_fight", "truncation"]
    assert plain["findings"][0]["what"] in as_text(run, result)


@pytest.mark.parametrize(
    ("path", "code"), [(DISEASED / "dropout", 1), (DISEASED / "ever_longer", 0), (DATA / "grpo", 0)]
)
def test_the_command_ends_with_1_where_something_is_serious(
    path: Path, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    assert main(["diagnose", str(path), "--json", "--html", str(page)]) == code
    assert json.loads(capsys.readouterr().out)["serious"] == bool(code)
    assert page.read_text("utf-8").startswith("<!doctype html>") and page.stat().st_mode & 0o077 == 0


def test_a_step_that_cannot_be_read_is_named_and_the_others_are_looked_at(tmp_path: Path) -> None:
    folder = shutil.copytree(DISEASED / "reward_constant", tmp_path / "run")
    (folder / "rank0/attempt0/step_00000002.parquet").write_bytes(b"PAR1 torn")
    result = diagnose(Trace(folder))
    assert len(result.unreadable) == 1 and result.updates == 5
    assert problems(result) == ["dead_groups_right"]


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_clipped_tokens_are_judged_under_the_surrogates_that_take_their_gradient(surrogate: str) -> None:
    o = Objective(surrogate=surrogate, beta=0.0)
    logp, advantage = np.array([[0.6, -0.6], [0.6, -0.6]]), np.array([1.0, -1.0])
    terms = evaluate(o, logp, np.zeros((2, 2)), advantage, np.ones((2, 2), bool))
    slope = gradient(o, logp, np.zeros((2, 2)), advantage, np.ones((2, 2), bool))
    stopped = terms.clipped.any() and not slope[terms.clipped].any()
    step = Trace(DISEASED / "clip_too_narrow").step(1)
    assert step.passes > 1
    settings = under(step, surrogate=surrogate)
    update = Update(label=1, settings=settings, step=dataclasses.replace(step, settings=settings))
    with nullcontext() if stopped else pytest.raises(NotRecordedError):
        CHECKS["clip_saturation"].measure(update)


def test_the_page_draws_a_bar_for_each_update_and_marks_those_since_it_began() -> None:
    run = Trace(DISEASED / "rate_too_high")
    result = diagnose(run)
    page = as_html(run, result)
    assert '<html lang="en">' in page
    drawings = [ET.fromstring(part + "</svg>") for part in re.findall(r"<svg.*?(?=</svg>)", page)]
    assert len(drawings) == len(result.findings)
    for drawing, finding in zip(drawings, result.findings, strict=True):
        bars = list(drawing)
        assert len(bars) == len(finding.course) == result.updates
        since = [bar.get("class") == "since" for bar in bars]
        assert since == [label >= finding.began for label, _ in finding.course]


def test_a_finding_takes_a_claim_and_a_check(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(update: Update) -> Measure:
        assert update.table is not None
        return Measure(label=update.label, value=float(len(update.table.rewards)))

    def judge(measures: Any, settings: Any) -> Verdict | None:
        most = max(measure.value for measure in measures)
        what = [Fault.of("asked_again", count=int(most))]
        return Verdict(what=what, began=1, evidence=(), grade=Grade.NOTICE) if most > 4 else None

    added = Check(
        title="Prompts asked again",
        measure=measure,
        judge=judge,
        quantity=Quantity(name="completions of a prompt"),
        change="Ask other prompts.",
        source="by definition",
    )
    monkeypatch.setitem(CHECKS.own, "asked_again", added)
    kind: Kind[Any] = Kind(
        text="A prompt was asked {count} times.", holds=lambda data, v: v.count == len(data[0].rewards)
    )
    monkeypatch.setitem(FAULTS, "asked_again", kind)
    for rewards, line in (
        ([0.0, 1.0] * 2, "Prompts asked again (completions of a prompt: 4)"),
        ([0.0, 1.0] * 4, "A prompt was asked 8 times."),
    ):
        run = Tables([completions(rewards)] * 3)
        result = diagnose(run)
        assert line in as_text(run, result) and line in as_html(run, result)
        assert line in json.dumps(as_json(run, result)) or not result.findings
