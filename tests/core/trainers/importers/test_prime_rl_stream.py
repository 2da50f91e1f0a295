"""The stream of episodes and annotations that prime-rl writes since September 2026.

``tests/data/sources/prime_rl_stream`` holds the episodes of ``verifiers/traces.jsonl`` as prime-rl's ``ChunkedJsonl``
writes them (the chunks sealed by pyzstd's ``SeekableZstdFile``, with frames of 4 kB instead of 4 MB), and their
advantages and trainer's numbers as updates of its orchestrator and trainer; the last episode of each group is not
trained on. The stream of the first test is transcribed from ``make_update``.
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
from grpo_core.trainers.importers import open_source
from grpo_core.trainers.importers.prime_rl_stream import Chunks, fold, seek_table
from grpo_core.trainers.importers.verifiers import VerifiersRun
from grpo_core.trainers.recorded_series import numbers
from tests.core.trainers.sources import DATA

HOME = DATA / "prime_rl_stream"
EPISODES = [json.loads(line) for line in (DATA / "verifiers" / "traces.jsonl").read_text("utf-8").splitlines()]
TRAINED = [number for number in range(8) if number % 4 != 3]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A run's folder, with the configuration of its trainer."""
    shutil.copytree(HOME, tmp_path / "run")
    shutil.copytree(DATA / "prime_rl" / "configs", tmp_path / "run" / "configs")
    return tmp_path / "run"


def opened(path: Path) -> VerifiersRun:
    run = open_source(path)
    assert isinstance(run, VerifiersRun)
    return run


def trace(mask: list[bool] | None = None) -> dict[str, Any]:
    """Return a trace of a prompt and two branches, of two and three tokens."""
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
    run, before = opened(HOME), opened(DATA / "verifiers")
    assert list(run.labels) == list(before.labels) == [1] and run.settings.recorded.source == "prime-rl"
    table, whole = run.completions(1), before.completions(1)
    assert table.completions == whole.completions and np.array_equal(table.group, whole.group)
    trained = np.array([*TRAINED])
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
    traces = home / "monitors" / "file" / "traces"
    late = {"version": 1, "trace_id": EPISODES[3]["traces"][0]["id"], "info": {"ship": {"step": 7}}, "branches": []}
    (traces / "annotations" / "late").mkdir()
    (traces / "annotations" / "late" / "00000.jsonl").write_text(json.dumps(late) + "\n")
    row = {"trace_id": late["trace_id"], "chunk": 0, "offset": 0, "info": late["info"]}
    (traces / "annotations" / "late.index.jsonl").write_text(json.dumps(row) + "\n")
    before = run.stamp(1)
    assert run.refresh() == 2 and list(run.labels) == [1, 7] and run.stamp(1) != before
    assert len(run.completions(2).rewards) == 1


def test_a_line_across_frames_is_read_whole() -> None:
    sealed = HOME / "monitors" / "file" / "traces" / "stream" / "00000.jsonl.zst"
    frames = seek_table(sealed)
    assert len(frames) > 1, "frames of 4 kB hold parts of lines"
    rows = (HOME / "monitors/file/traces/stream.index.jsonl").read_text("utf-8").splitlines()
    places = [(row["chunk"], row["offset"]) for row in map(json.loads, rows)]
    assert [Chunks(sealed.parent).value(place)["id"] for place in places] == [one["id"] for one in EPISODES]


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
    sealed = home / "monitors" / "file" / "traces" / "stream" / "00000.jsonl.zst"
    sealed.write_bytes(damaged(sealed.read_bytes()))
    run = opened(home)
    assert len(run.completions(1).completions) == 5
    assert any("An episode of step 1 is left out: Chunk 0 of stream cannot be read" in note for note in run.notes)


def test_where_no_chunk_is_left_the_error_says_so(home: Path) -> None:
    shutil.rmtree(home / "monitors" / "file" / "traces" / "stream")
    (home / "monitors" / "file" / "traces" / "stream").mkdir()
    with pytest.raises(RunFileError, match="contains no readable trace"):
        opened(home)


@pytest.mark.parametrize(
    "row", ["7", "{}", '{"chunk": -1, "offset": 0}', '{"chunk": 0, "offset": 1e400}', '{"chunk": "0"}']
)
def test_an_index_with_odd_rows_is_read_without_them(row: str, home: Path) -> None:
    index = home / "monitors" / "file" / "traces" / "stream.index.jsonl"
    index.write_text(row + "\n" + index.read_text("utf-8"), "utf-8")
    assert len(opened(home).completions(1).completions) == 9
