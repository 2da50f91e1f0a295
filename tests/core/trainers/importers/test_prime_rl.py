"""prime-rl's token export next to its rollouts: its loss is recomputed, or a message says why not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grpo_core import recompute
from grpo_core.foreign.readers import recorded
from grpo_core.texts import assumption
from grpo_core.trainers.audit.audit import audit
from grpo_core.trainers.audit.report import why_not
from grpo_core.trainers.health import diagnose
from grpo_core.trainers.importers import open_source, prime_rl_settings
from grpo_core.trainers.importers.verifiers import VerifiersRun
from tests.core.trainers.sources import DATA

Line = dict[str, Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run's folder: prime-rl's own files, and the rollouts that they were made from."""
    home = tmp_path / "run"
    shutil.copytree(DATA / "prime_rl", home)
    rollouts = home / "rollouts" / "step_1" / "train" / "all"
    rollouts.mkdir(parents=True)
    shutil.copy(DATA / "verifiers" / "traces.jsonl", rollouts)
    return home


def opened(path: Path) -> VerifiersRun:
    run = open_source(path)
    assert isinstance(run, VerifiersRun)
    return run


def configure(folder: Path, **loss: Any) -> None:
    path = folder / "configs" / "trainer.json"
    whole = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(whole | {"loss": loss}), "utf-8")


def change_lines(path: Path, change: Callable[[Line], None]) -> None:
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    for line in lines:
        change(line)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")


def exports(folder: Path) -> list[Path]:
    return sorted((folder / "token_exports" / "step_1").glob("*.jsonl"))


def test_its_tokens_are_those_of_the_export_and_its_loss_is_recomputed(folder: Path) -> None:
    run = opened(folder)
    step = run.step(1)
    lines = [json.loads(line) for file in exports(folder) for line in file.read_text("utf-8").splitlines()]
    columns = ("inference_logprobs", "trainer_logprobs", "entropy")
    theirs = sorted(
        tuple(np.float32(line[name][i]) for name in columns)
        for line in lines
        for i, counts in enumerate(line["loss_mask"])
        if counts
    )
    used = recompute.used(step, 0)
    assert step.sampling_logp is not None and step.entropy is not None and step.gate is not None
    assert sorted(zip(step.sampling_logp[used], step.logp[0][used], step.entropy[0][used], strict=True)) == theirs
    left_out = sum(sum(line["is_masked"]) for line in lines)
    assert left_out > 0 and (step.gate[0][used] == 0).sum() == left_out
    assert assumption(step) == "" and run.settings.recorded.trainer_values["loss.kl_tau"] == 0.01
    assert run.has_losses
    result = audit(run)
    assert [c.what for s in result.steps for c in s.comparisons] == ["loss"]
    assert result.first is None and not result.causes and not any(s.skipped for s in result.steps)


def test_the_gradient_is_that_of_its_loss(folder: Path) -> None:
    step = opened(folder).step(1)
    used = recompute.used(step, 0)
    push, pull = recompute.token_gradient(step, 0)
    assert pull is not None
    loss = json.loads((folder / "configs" / "trainer.json").read_text("utf-8"))["loss"]
    assert step.sampling_logp is not None and step.advantage is not None and step.denominator is not None
    advantage = np.broadcast_to(step.advantage.reshape(len(step.mask), -1), step.mask.shape)
    logp, sampling = step.logp[0].astype(float), step.sampling_logp.astype(float)
    kept = ~prime_rl_settings.dropped(loss, logp, sampling, advantage)
    raised = kept * loss["adv_tau"] * advantage * np.exp(logp - sampling)
    theirs = (-raised + 2 * loss["kl_tau"] * (logp - sampling)) / step.denominator[0, 0]
    assert (push + pull)[used] == pytest.approx(theirs[used], rel=1e-5)


def test_another_setting_than_the_trainers_is_found(folder: Path) -> None:
    configure(folder, type="default", dppo_mask_low=0.2, dppo_mask_high=0.2, adv_tau=0.5, kl_tau=0.5)
    recorded = opened(folder)
    assert recorded.has_losses and audit(recorded).first is not None


def test_a_mask_that_the_settings_do_not_give_is_noted(folder: Path) -> None:
    configure(folder, type="default", dppo_mask_low=5.0, dppo_mask_high=5.0, adv_tau=0.5, kl_tau=0.01)
    run = opened(folder)
    run.step(1)
    assert any("dropped tokens other than" in note for note in run.notes)


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        ({"type": "custom", "import_path": "mine.loss"}, "mine.loss"),
        ({"type": "gspo"}, "“gspo” is unknown"),
        ({"type": "default", "token_mask_high": 8.0}, "“token_mask_high”"),
        ({"type": "default", "kl_tau": "much"}, "“kl_tau”"),
    ],
)
def test_a_loss_that_is_not_ours_is_said_and_its_tokens_are_shown(
    folder: Path, loss: dict[str, Any], said: str
) -> None:
    configure(folder, **loss)
    run = opened(folder)
    step = run.step(1)
    assert not run.has_losses and said in why_not(run) and any(said in note for note in run.notes)
    assert step.sampling_logp is not None and assumption(step)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "cannot be read"),
        ("{", "cannot be read"),
        ('{"loss": []}', "“[]” is unknown"),
        ('{"loss": {"type": ["x"]}}', "is unknown"),
        ('{"loss": {"kl_tau": NaN}}', "“kl_tau”"),
        ('{"monitors": {"file": {"path": "a\\u0000b"}}}', "no loss of step 1"),
    ],
)
def test_a_configuration_that_is_none_is_a_sentence(folder: Path, text: str, said: str) -> None:
    (folder / "configs" / "trainer.json").write_text(text, "utf-8")
    run = opened(folder)
    assert len(run.step(1).group) == 9 and said in run.incomplete(1)


def test_ipo_drops_on_both_sides(folder: Path) -> None:
    for file in exports(folder):
        change_lines(file, lambda line: line.update(is_masked=[None]))
    configure(folder, type="ipo", ipo_threshold=0.05)
    step = opened(folder).step(1)
    used = recompute.used(step, 0)
    assert step.sampling_logp is not None and step.gate is not None
    moved = np.exp(step.logp[0].astype(float)) - np.exp(step.sampling_logp.astype(float))
    assert ((np.abs(moved) > 0.05) == (step.gate[0] == 0))[used].all() and (step.gate[0][used] == 0).any()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda home: (home / "token_exports" / "step_1" / "STABLE").unlink(), "still being written"),
        (lambda home: (home / "metrics.jsonl").unlink(), "no loss of step 1"),
        (lambda home: (home / "configs" / "orchestrator.json").unlink(), "num_train_workers"),
        (lambda home: change_lines(exports(home)[0], lambda line: line["token_ids"].reverse()), "not in any rollout"),
        (lambda home: change_lines(exports(home)[0], lambda line: line.pop("entropy")), "not what prime-rl writes"),
        (
            lambda home: change_lines(
                exports(home)[0], lambda line: line.update(ce_weights=[0.1] * len(line["token_ids"]))
            ),
            "cross-entropy",
        ),
    ],
)
def test_what_the_comparison_lacks_is_said(folder: Path, change: Callable[[Path], Any], said: str) -> None:
    change(folder)
    recorded = opened(folder)
    assert recorded.has_losses
    (step,) = audit(recorded).steps
    assert said in step.skipped and not step.comparisons


def test_without_an_export_the_setting_that_writes_it_is_named(folder: Path) -> None:
    shutil.rmtree(folder / "token_exports")
    run = opened(folder / "rollouts")
    assert not run.has_losses and "enable_token_export" in why_not(run)
    assert run.settings.recorded.names_loss and run.settings.objective.beta == 0.02
    assert recompute.terms(run.step(1), 0).loss is not None and run.measured(1)[1] is None


@pytest.mark.parametrize("log", [False, True])
def test_a_command_names_the_setting_too_although_another_process_reads_the_run(folder: Path, log: bool) -> None:
    shutil.rmtree(folder / "token_exports")
    if log:
        line = {"step": 1, "reward/mean": 0.5, "entropy/mean": 0.3, "loss/mean": 0.1}
        (folder / "log.jsonl").write_text(json.dumps(line) + "\n", "utf-8")
    with recorded(folder, lambda: None) as run:
        assert bool(run.reports(1)) is log
        assert not run.has_losses and "enable_token_export" in why_not(run)


def test_a_rollout_that_the_trainer_cut_or_took_from_the_step_before_is_found(folder: Path) -> None:
    everything = folder / "rollouts" / "step_1" / "train" / "all" / "traces.jsonl"
    lines = everything.read_text("utf-8").splitlines(keepends=True)
    used = folder / "rollouts" / "step_1" / "train" / "effective"
    used.mkdir()
    (used / "traces.jsonl").write_text("".join(lines[:3]), "utf-8")
    everything.write_text("".join(lines[1:]), "utf-8")
    run = opened(folder)
    assert len(run.completions(1).group) == len(run.step(1).group) == 9 and run.incomplete(1) == ""

    def lengthen(line: Line) -> None:
        node = line["traces"][0]["nodes"][-1]
        node["token_ids"].append(31)
        node["mask"].append(True)

    change_lines(everything, lengthen)
    step = opened(folder).step(1)
    assert recompute.used(step, 0).sum() == recompute.used(run.step(1), 0).sum()


def test_a_toml_written_by_hand_has_prime_rls_defaults(folder: Path) -> None:
    for name in ("trainer.json", "orchestrator.json"):
        (folder / "configs" / name).unlink()
    text = "[trainer.loss]\nadv_tau = 0.5\nkl_tau = 0.01\n[orchestrator]\nnum_train_workers = 2\n"
    (folder / "configs" / "rl.toml").write_text(text, "utf-8")
    run = opened(folder)
    assert run.has_losses and audit(run).first is None and audit(run).compared == 1
    assert any("written by hand" in note for note in run.notes)


def test_the_sampler_as_the_reference_of_the_loss_is_no_fault_of_the_run(folder: Path) -> None:
    found = {finding.check for finding in diagnose(opened(folder)).findings}
    assert "sampler_differs" in found, "the trainer's numbers were made with noise"
    assert not found & {"sampler_is_reference", "reference_elsewhere", "non_finite"}
