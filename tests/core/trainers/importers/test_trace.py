"""The trace of a TRL run as steps: the record contains what the trainer saw."""

from __future__ import annotations

import dataclasses
import json
import os
import time
from pathlib import Path

import numpy as np
import pytest

from grpo_core import recompute
from grpo_core.config import settings_from_json
from grpo_core.errors import NotRecordedError, RunFileError
from grpo_core.trainers.importers import IMPORTERS, importer_for, open_source
from grpo_core.trainers.importers.trace import Trace
from grpo_core.trainers.importers.trace_folder import PATIENCE_SECONDS
from tests.core.trainers.trace_files import DATA, HEALTHY, VERL, copied


@pytest.mark.parametrize("name", HEALTHY)
def test_the_loss_of_each_optimizer_step_is_what_the_trainer_logged(name: str) -> None:
    run = Trace(DATA / name)
    compared = 0
    for position in range(1, len(run) + 1):
        step = run.step(position)
        logged = {report.step: report.numbers["loss"] for report in run.reports(position) if "loss" in report.numbers}
        assert step.optimizer_step is not None and step.label is not None
        for index in np.unique(step.optimizer_step):
            passes = [int(n) for n in np.flatnonzero(step.optimizer_step == index)]
            ours = sum(float(recompute.terms(step, n).loss) for n in passes)
            every = [recompute.terms(step, n) for n in passes]
            size = sum(float(np.abs(terms.weight * terms.token_loss).sum()) for terms in every)
            label = step.label - int(step.optimizer_step.max()) + int(index)
            assert ours == pytest.approx(logged[label], abs=1e-6 * size)
            compared += 1
    assert compared == 4


def test_a_group_may_span_processes_and_every_completion_is_there() -> None:
    run = Trace(DATA / "two_processes")
    step = run.step(1)
    assert run.processes == 2 and set(np.bincount(step.group)) == {4}
    assert sorted(np.unique(step.part)) == [0, 1, 2, 3]  # two micro-batches of each process
    assert len(run.completions(1).completions) == len(step.tokens)


def test_generation_batches_before_one_optimizer_step_are_one_update_with_groups_of_their_own() -> None:
    step = Trace(DATA / "short_generations").step(1)
    assert step.passes == 1 and len(step.tokens) == 32
    assert set(np.bincount(step.group)) == {4}


def test_the_text_of_a_completion_is_that_of_its_tokens() -> None:
    run = Trace(DATA / "grpo")
    step, table = run.step(1), run.completions(1)
    words = json.loads((DATA / "grpo/tokenizer/tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    letters = {number: word for word, number in words.items() if len(word) == 1}  # the others are <pad>, <eos>, <unk>
    for tokens, mask, text in zip(step.tokens, step.mask, table.completions, strict=True):
        assert "".join(letters.get(int(token), "") for token in tokens[mask]) == text


def test_labels_are_the_trainers_own_numbers() -> None:
    run = Trace(DATA / "grpo")
    assert list(run.labels) == [2, 4] and run.step(2).label == 4 and run.step(2).step == 2


def test_the_settings_say_that_another_program_trained_and_survive_json() -> None:
    settings = Trace(DATA / "grpo").settings
    assert settings.is_recorded and not settings.is_language
    assert settings.recorded.source == "TRL 1.16.0" and settings.recorded.reward_names == ("digits", "shortness")
    assert settings_from_json(settings.to_json()) == settings


def test_a_missing_process_is_named_and_its_step_stays(tmp_path: Path) -> None:
    folder = copied("two_processes", tmp_path)
    lines = (folder / "rank1/attempt0/index.jsonl").read_text().splitlines(keepends=True)
    (folder / "rank1/attempt0/index.jsonl").write_text("".join(lines[:1]))
    written(folder, PATIENCE_SECONDS + 10)
    run = Trace(folder)
    assert len(run) == 2 and run.incomplete(1) == "" and "1" in run.incomplete(2)
    assert any("process 1" in note for note in run.notes)


def test_a_step_that_one_process_is_still_writing_waits_for_it(tmp_path: Path) -> None:
    folder = copied("two_processes", tmp_path)
    index = folder / "rank1/attempt0/index.jsonl"
    whole = index.read_text()
    index.write_text("".join(whole.splitlines(keepends=True)[:1]))
    written(folder, 0)
    run = Trace(folder)
    assert run.labels == [2] and any("Step 4" in note and "process 1" in note for note in run.notes)
    index.write_text(whole)
    assert run.refresh() == 2 and not run.notes


def written(folder: Path, seconds_ago: float) -> None:
    """Set the modification time of every Parquet file of a trace to the given number of seconds ago."""
    then = time.time() - seconds_ago
    for file in folder.rglob("*.parquet"):
        os.utime(file, (then, then))


def test_what_is_logged_meanwhile_is_there_though_the_log_was_read_before(tmp_path: Path) -> None:
    folder = copied("grpo", tmp_path)
    log = folder / "rank0/attempt0/log.jsonl"
    whole = log.read_text()
    log.write_text(whole.splitlines(keepends=True)[0])
    run = Trace(folder)
    assert not run.reports(2)
    log.write_text(whole)
    assert run.reports(2) == Trace(DATA / "grpo").reports(2) != []


def test_a_step_that_is_being_written_appears_when_its_line_ends(tmp_path: Path) -> None:
    folder = copied("grpo", tmp_path)
    index = folder / "rank0/attempt0/index.jsonl"
    whole = index.read_bytes()
    index.write_bytes(whole[:-10])
    run = Trace(folder)
    assert len(run) == 1 and not run.notes
    index.write_bytes(whole)
    assert run.refresh() == 2


def test_a_restart_wins_over_what_it_trained_again(tmp_path: Path) -> None:
    folder = copied("grpo", tmp_path)
    again = folder / "rank0/attempt1"
    again.mkdir()
    first = folder / "rank0/attempt0"
    lines = (first / "index.jsonl").read_text().splitlines(keepends=True)
    (again / "index.jsonl").write_text(lines[1])  # the second step, trained again
    (again / json.loads(lines[1])["file"]).write_bytes((first / json.loads(lines[1])["file"]).read_bytes())
    run = Trace(folder)
    assert [step.attempt for step in run.steps] == [0, 1] and list(run.labels) == [2, 4]
    assert any("restarted" in note for note in run.notes)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}",
        b"[" * 100_000,
        b'{"format": "grpo-lab-trace", "version": 1, "settings": {}}',
        b"\xff\xfe\x00",
        b'{"format": "grpo-lab-trace", "version": 99, "settings": {}, "num_processes": 1}',
        b'{"format": "grpo-lab-trace", "version": 1, "settings": {"loss_type": "other"}, "num_processes": "x"}',
    ],
)
def test_a_description_that_is_none_is_refused_in_a_sentence(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "trace.json").write_bytes(text)
    with pytest.raises(RunFileError, match=r"trace\.json"):
        open_source(tmp_path)


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"\x00" * 5000])
def test_a_torn_file_is_refused_in_a_sentence(tmp_path: Path, damage: bytes) -> None:
    folder = copied("grpo", tmp_path)
    (folder / "rank0/attempt0/step_00000001.parquet").write_bytes(damage)
    run = Trace(folder)
    with pytest.raises(RunFileError, match=r"step_00000001\.parquet"):
        run.step(1)
    assert run.step(2).step == 2


@pytest.mark.parametrize("name", ["../../secret", "/etc/passwd", "a/b.parquet", 7])
def test_an_index_leads_nowhere_but_to_files_beside_it(tmp_path: Path, name: object) -> None:
    folder = copied("grpo", tmp_path)
    index = folder / "rank0/attempt0/index.jsonl"
    line = json.loads(index.read_text().splitlines()[0]) | {"file": name}
    index.write_text(json.dumps(line) + "\n")
    assert len(Trace(folder)) == 0


def test_a_trace_of_texts_alone_says_why_there_is_no_loss(tmp_path: Path) -> None:
    folder = copied("grpo", tmp_path)
    said = json.loads((folder / "trace.json").read_text())
    (folder / "trace.json").write_text(json.dumps(said | {"level": "texts", "reason": "rewritten by Unsloth"}))
    run = Trace(folder)
    with pytest.raises(NotRecordedError, match="Unsloth"):
        run.step(1)
    assert run.completions(1).completions[0] is not None


@pytest.mark.parametrize("name", [*HEALTHY, VERL])
def test_each_format_is_known_by_one_importer_alone(name: str) -> None:
    assert [key for key, importer in IMPORTERS.items() if importer.probe(DATA / name)] == ["trace"]
    assert importer_for(DATA / name) == "trace"


def test_what_no_importer_knows_is_refused_with_the_formats_there_are(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(RunFileError, match="recorder for TRL or verl"):
        open_source(tmp_path)
    with pytest.raises(RunFileError, match="does not exist"):
        open_source(tmp_path / "nothing")


def test_a_completion_that_ends_before_the_limit_was_not_cut_off_whatever_it_ends_on() -> None:
    run = Trace(DATA / "grpo")
    run.settings = dataclasses.replace(run.settings, task=dataclasses.replace(run.settings.recorded, eos_ids=(9999,)))
    table = run.completions(1)
    assert table.truncated is not None and table.length is not None
    assert (table.truncated == (table.length == run.settings.recorded.max_tokens)).all()
    assert 0 < table.truncated.sum() < len(table.truncated)
