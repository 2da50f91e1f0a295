"""prime-rl's token export next to its rollouts, and its stream of episodes and annotations: its loss is recomputed, or
a message says why not.
"""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grpo_core import recompute
from grpo_core.commands.cli import main
from grpo_core.errors import RunFileError
from grpo_core.foreign.readers import recorded
from grpo_core.texts import assumption
from grpo_core.trainers.audit.audit import audit
from grpo_core.trainers.audit.report import why_not
from grpo_core.trainers.health import diagnose
from grpo_core.trainers.importers import open_source, prime_rl_settings
from grpo_core.trainers.importers.prime_rl_stream import fold, seek_table
from grpo_core.trainers.importers.verifiers import VerifiersRun
from grpo_core.trainers.recorded_series import numbers
from tests.core.trainers.sources import DATA, changed_lines, lines_of, written

Line = dict[str, Any]
STREAM = DATA / "prime_rl_stream"
"""The stream that prime-rl writes since September 2026.

The episodes of ``verifiers/traces.jsonl`` as its ``ChunkedJsonl`` writes them (the chunks sealed by pyzstd's
``SeekableZstdFile``, with frames of 4 kB instead of 4 MB), and their advantages and trainer's numbers as updates of its
orchestrator and trainer. The last episode of each group is not trained on.
"""
MONITORED = Path("monitors/file/traces")
EPISODES = lines_of(DATA / "verifiers" / "traces.jsonl")
TRAINED = [number for number in range(8) if number % 4 != 3]


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


def exports(folder: Path) -> list[Path]:
    return sorted((folder / "token_exports" / "step_1").glob("*.jsonl"))


def test_its_tokens_are_those_of_the_export_and_its_loss_is_recomputed(folder: Path) -> None:
    run = opened(folder)
    step = run.step(1)
    lines = [line for file in exports(folder) for line in lines_of(file)]
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
        changed_lines(file, lambda line: line.update(is_masked=[None]))
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
        (lambda home: changed_lines(exports(home)[0], lambda line: line["token_ids"].reverse()), "not in any rollout"),
        (lambda home: changed_lines(exports(home)[0], lambda line: line.pop("entropy")), "not what prime-rl writes"),
        (
            lambda home: changed_lines(
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

    changed_lines(everything, lengthen)
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


# -- the stream --------------------------------------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A run's folder, with the configuration of its trainer."""
    shutil.copytree(STREAM, tmp_path / "run")
    shutil.copytree(DATA / "prime_rl" / "configs", tmp_path / "run" / "configs")
    return tmp_path / "run"


def trace(mask: list[bool] | None = None) -> dict[str, Any]:
    """Return a trace of a prompt and two branches, of two and three tokens (after prime-rl's ``make_update``)."""
    nodes: list[dict[str, Any]] = [
        {"token_ids": [1, 2], "mask": [False, False]},
        {"parent": 0, "sampled": True, "token_ids": [5, 6], "mask": mask or [False, True]},
        {"parent": 0, "sampled": True, "token_ids": [7, 8, 9], "mask": [True, True, True]},
    ]
    return {"id": "t", "nodes": nodes, "info": {"kind": "train"}}


def update(index: int = 0, **streams: Any) -> dict[str, Any]:
    return {"version": 1, "trace_id": "t", "info": {}, "branches": [{"index": index, **streams}]}


@pytest.mark.parametrize(
    ("updates", "name", "folded"),
    [
        ([update(trainer_logprobs=[None, None, None, -0.2])], "trainer_logprobs", [-0.2]),
        (
            [update(trainer_logprobs=[None] * 3 + [-9]), update(trainer_logprobs=[None] * 3 + [-1])],
            "trainer_logprobs",
            [-1],
        ),
        ([update(trainer_logprobs=[None] * 3 + [-9]), update(trainer_logprobs=[None] * 4)], "trainer_logprobs", [-9]),
        ([update(entropies=[None, None, None])], "entropies", None),
        ([update(is_masked=[None, None, None, True])], "is_masked", [True]),
        ([update(is_masked=[None] * 4)], "is_masked", None),
        ([update(5, trainer_logprobs=[0.0] * 4)], "trainer_logprobs", None),
        ([update(1, trainer_logprobs=[0.0] * 5)], "trainer_logprobs", None),
    ],
)
def test_updates_are_folded_in_the_order_written_and_need_every_sampled_token(
    updates: list[dict[str, Any]], name: str, folded: list[Any] | None
) -> None:
    whole = trace()
    for one in updates:
        fold(whole, one)
    assert whole["nodes"][1].get(name) == folded and name not in whole["nodes"][0]


def test_flags_may_lack_tokens_that_were_not_trained() -> None:
    whole = trace([True, True])
    fold(whole, update(is_masked=[None, None, None, True], trainer_logprobs=[None, None, None, -1.0]))
    assert whole["nodes"][1]["is_masked"] == [None, True] and "trainer_logprobs" not in whole["nodes"][1]


def test_the_stream_gives_the_run_that_the_single_file_gave() -> None:
    assert len(seek_table(STREAM / MONITORED / "stream" / "00000.jsonl.zst")) > 1, "frames of 4 kB hold parts of lines"
    run, before = opened(STREAM), opened(DATA / "verifiers")
    assert list(run.labels) == list(before.labels) == [1] and run.settings.recorded.source == "prime-rl"
    table, whole = run.completions(1), before.completions(1)
    assert table.completions == whole.completions and np.array_equal(table.group, whole.group)
    trained = np.array(TRAINED)
    assert table.advantage is not None and whole.advantage is not None
    assert table.advantage[trained] == pytest.approx(whole.advantage[trained], abs=1e-12)
    assert np.isnan(table.advantage[3]), "not trained on, so it has no advantage"
    assert table.training_logp is not None and whole.training_logp is not None
    for row in TRAINED:
        assert np.array_equal(table.training_logp[row], whole.training_logp[row]), "the newest update counts"


def test_importance_weights_and_the_loss_follow_from_the_annotations(home: Path) -> None:
    run = opened(home)
    step, (_, measured) = run.step(1), run.measured(1)
    assert measured is not None and step.gate is not None and (step.part[0][:4] >= 0).tolist() == [True] * 3 + [False]
    ours = recompute.importance_weights(step)
    used = recompute.used(step, 0)
    streams = [
        np.exp(np.array(node["trainer_logprobs"]) - np.array(node["logprobs"]))
        for number in TRAINED
        for node in EPISODES[number]["traces"][0]["nodes"]
        if node.get("trainer_logprobs")
    ]
    assert ours is not None and np.sort(ours[used]) == pytest.approx(np.sort(np.concatenate(streams)), rel=1e-5)
    weight = np.where(used, ours, 0.0)
    advantage = np.broadcast_to(np.nan_to_num(np.asarray(step.advantage)).reshape(len(used), -1), used.shape)
    log_ratio = np.log(np.where(used, ours, 1.0))
    expected = float((-0.5 * advantage * weight + 1e-2 * log_ratio**2).sum() / used.sum())
    assert run.settings.objective.beta == pytest.approx(2e-2)
    assert float(recompute.part_losses(step, 0).sum()) == pytest.approx(expected, rel=1e-5)
    assert np.isfinite(numbers(run, 1)["loss"]) and "micro-batches" in run.why_no_losses


def test_the_commands_open_it(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(home)]) == 0, "the sampler is the reference of the loss, and not at fault"
    assert main(["audit", str(home)]) == 2
    assert main(["import", str(home), str(home.parent / "run.grpo")]) == 0
    assert "1 update" in capsys.readouterr().out
    assert opened(home).completions(1).completions == open_source(home.parent / "run.grpo").completions(1).completions


def test_a_step_that_is_shipped_later_moves_its_episodes(home: Path) -> None:
    run = opened(home)
    traces = home / MONITORED
    late = {"version": 1, "trace_id": EPISODES[3]["traces"][0]["id"], "info": {"ship": {"step": 7}}, "branches": []}
    written(traces / "annotations" / "late" / "00000.jsonl", [late])
    row = {"trace_id": late["trace_id"], "chunk": 0, "offset": 0, "info": late["info"]}
    written(traces / "annotations" / "late.index.jsonl", [row])
    before = run.stamp(1)
    assert run.refresh() == 2 and list(run.labels) == [1, 7] and run.stamp(1) != before
    assert len(run.completions(2).rewards) == 1


def table_of(count: int, frames: list[tuple[int, int]], magic: int = 0x8F92EAB1) -> bytes:
    """Return a seek table that names ``count`` frames and lists ``frames``."""
    entries = b"".join(struct.pack("<II", *frame) for frame in frames)
    return struct.pack("<II", 0x184D2A5E, len(entries) + 9) + entries + struct.pack("<IBI", count, 0, magic)


@pytest.mark.parametrize(
    "damaged",
    [
        lambda whole: b"",
        lambda whole: whole[:-1],
        lambda whole: whole[: len(whole) // 2],
        lambda whole: whole[20:],
        lambda whole: b"\0" * 40 + table_of(1, [(40, 2**32 - 1)]),
        lambda whole: b"\0" * 40 + table_of(2**32 - 1, [(40, 100)]),
        lambda whole: b"\0" * 40 + table_of(1, [(40, 1000)]),
        lambda whole: b"\0" * 40 + table_of(1, [(39, 1000)]),
        lambda whole: b"\0" * 40 + table_of(1, [(40, 1000)], magic=1),
    ],
)
def test_a_damaged_chunk_leaves_the_others_and_is_said(damaged: Callable[[bytes], bytes], home: Path) -> None:
    sealed = home / MONITORED / "stream" / "00000.jsonl.zst"
    sealed.write_bytes(damaged(sealed.read_bytes()))
    run = opened(home)
    assert len(run.completions(1).completions) == 5
    assert any("An episode of step 1 is left out: Chunk 0 of stream cannot be read" in note for note in run.notes)


def test_where_no_chunk_is_left_the_error_says_so(home: Path) -> None:
    shutil.rmtree(home / MONITORED / "stream")
    (home / MONITORED / "stream").mkdir()
    with pytest.raises(RunFileError, match="contains no readable trace"):
        opened(home)


@pytest.mark.parametrize(
    "row", ["7", "{}", '{"chunk": -1, "offset": 0}', '{"chunk": 0, "offset": 1e400}', '{"chunk": "0"}']
)
def test_an_index_with_odd_rows_is_read_without_them(row: str, home: Path) -> None:
    index = home / MONITORED / "stream.index.jsonl"
    index.write_text(row + "\n" + index.read_text("utf-8"), "utf-8")
    assert len(opened(home).completions(1).completions) == 9
