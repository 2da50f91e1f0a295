"""A run file converted from a recorded run contains the same data as its source."""

from __future__ import annotations

import csv
import dataclasses
import shutil
import sqlite3
import stat
from pathlib import Path

import numpy as np
import pytest

from grpo_core.commands.cli import main, parsers
from grpo_core.errors import NotRecordedError, RunFileError
from grpo_core.foreign.recording import Completions, Source
from grpo_core.record import ARRAYS
from grpo_core.runs.library import entries
from grpo_core.texts import assumption
from grpo_core.trainers.audit import audit
from grpo_core.trainers.conversion import convert
from grpo_core.trainers.importers import IMPORTERS, open_source
from grpo_core.trainers.importers.converted import ConvertedRun, as_plain, from_plain
from grpo_core.trainers.recorded_series import numbers
from tests.core.trainers.sources import AGENT, LOG, SOURCES, TEXTS, source_path
from tests.core.trainers.sources import DATA as SOURCES_DATA
from tests.core.trainers.trace_files import DATA, FAULTY, HEALTHY, VERL


def texts(source: Source, position: int = 1) -> object:
    table = source.completions(position)
    return table.prompts, table.completions


@pytest.mark.parametrize("name", ["grpo", "entbonus", "two_processes"])
def test_every_array_of_a_trace_is_in_the_file(name: str, tmp_path: Path) -> None:
    source = open_source(DATA / name)
    convert(source, out := tmp_path / "run.grpo")
    run = open_source(out)
    assert isinstance(run, ConvertedRun) and list(run.labels) == list(source.labels)
    assert run.settings == source.settings and run.vocabulary == source.vocabulary
    for position in range(1, len(run) + 1):
        ours, theirs = run.step(position), source.step(position)
        for field in ARRAYS:
            one, other = getattr(ours, field), getattr(theirs, field)
            assert (one is None) == (other is None), field
            assert one is None or np.array_equal(one, other, equal_nan=one.dtype.kind == "f"), field
        assert (ours.label, ours.prompt_texts, ours.completion_texts) == (
            theirs.label,
            theirs.prompt_texts,
            theirs.completion_texts,
        )
        assert numbers(run, position) == pytest.approx(numbers(source, position), nan_ok=True)


@pytest.mark.parametrize("name", [*TEXTS, "agent"])
def test_a_source_without_a_known_loss_keeps_its_table_with_turns_and_metrics(name: str, tmp_path: Path) -> None:
    source = open_source(AGENT if name == "agent" else source_path(name, tmp_path))
    convert(source, out := tmp_path / "run.grpo")
    run = open_source(out)
    for position in range(1, len(source) + 1):
        ours, theirs = run.completions(position), source.completions(position)
        for field in dataclasses.fields(Completions):
            one, other = getattr(ours, field.name), getattr(theirs, field.name)
            if isinstance(other, np.ndarray) or (
                isinstance(other, tuple) and any(isinstance(x, np.ndarray) for x in other)
            ):
                np.testing.assert_equal(one, other, err_msg=field.name)
            else:
                assert one == other, field.name
    assert numbers(run, 1) == pytest.approx(numbers(source, 1), nan_ok=True)
    if name == "agent":  # tokens without the settings of their loss
        kept, there = run.step(1), source.step(1)
        assert np.array_equal(kept.tokens, there.tokens) and np.array_equal(kept.mask, there.mask)
        assert assumption(kept) == assumption(there) != ""
        return
    with pytest.raises(NotRecordedError, match="no loss to recompute"):
        run.step(1)


TURNS = {"prompt": [], "turns": [{"role": "tool", "text": "4", "calls": [{"name": "add"}], "seconds": 0.5}]}


@pytest.mark.parametrize(
    "damaged",
    [
        [],
        {"turns": []},
        {"prompt": [], "turns": [{"role": 1, "text": ""}]},
        {"prompt": [], "turns": [{"role": "tool", "text": "4", "tokens": True}]},
        {"prompt": [], "turns": [{"role": "tool", "text": "4", "seconds": "fast"}]},
        {"prompt": [], "turns": [{"role": "tool", "text": "4", "sampled": 1}]},
        {"prompt": [], "turns": [{"role": "tool", "text": "4", "calls": [{"name": None}]}]},
        {"prompt": [], "turns": [], "rewards": [["right", 1.0]]},
        {"prompt": [], "turns": [], "unknown": 1},
    ],
)
def test_a_trajectory_is_read_only_if_every_field_has_its_type(damaged: object) -> None:
    assert as_plain(from_plain(TURNS)) == TURNS
    with pytest.raises((LookupError, TypeError, ValueError)):
        from_plain(damaged)


@pytest.mark.parametrize("name", [*HEALTHY[:1], *FAULTY])
def test_the_audit_of_the_file_is_that_of_its_source(name: str, tmp_path: Path) -> None:
    convert(source := open_source(DATA / name), out := tmp_path / "run.grpo")
    ours, theirs = audit(ConvertedRun(out)), audit(source)
    assert ours.agrees == theirs.agrees and ours.explanations == theirs.explanations
    assert ours.compared == theirs.compared > 0


def test_the_command_writes_a_file_for_the_owner_that_the_other_commands_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run.grpo"
    assert main(["import", str(DATA / "fault_clip"), str(out), "--last", "2"]) == 0
    assert "contains 2 updates" in capsys.readouterr().out
    assert stat.S_IMODE(out.stat().st_mode) & 0o077 == 0 and [file.name for file in tmp_path.iterdir()] == ["run.grpo"]
    assert [key for key, importer in IMPORTERS.items() if importer.probe(out)] == ["converted"]
    assert main(["audit", str(out)]) == 1
    assert main(["import", str(DATA / "grpo"), str(out)]) == 2
    assert "already exists" in capsys.readouterr().err


IMPORTED = (*SOURCES, "log", "agent", "verl_former", "prime_rl", *HEALTHY, f"{VERL} trace", *FAULTY)
"""Every kind of source in the tests' data."""
COMMANDS = {
    "inspect": [],
    "inspect --step": ["--step", "1"],
    "inspect --try": ["--try"],
    "export": ["--out", "out"],
    "export to a script": ["--out", "step.py"],
    "export --model": ["--out", "model", "--model", "adapter"],
    "verify": [],
    "rebuild": ["rebuilt.grpo"],
    "diagnose": [],
    "ask": [],
    "audit": [],
    "watch": ["--every", "0.1", "--idle", "0.1"],
    "import": ["again.grpo"],
}
"""Name of a command, and optionally what it is to do -> its arguments after the run file."""
OF_TOKENS = ("inspect --step", "inspect --try", "export to a script", "audit")


def _source(name: str, folder: Path) -> Path:
    if name in SOURCES:
        return source_path(name, folder)
    if name == "prime_rl":
        rollouts = shutil.copytree(SOURCES_DATA / name, folder / name) / "rollouts" / "step_1" / "train" / "all"
        rollouts.mkdir(parents=True)
        shutil.copy(SOURCES_DATA / "verifiers" / "traces.jsonl", rollouts)
        return folder / name
    if name == "verl_former":
        return SOURCES_DATA / name
    if name == "log":
        return LOG
    return AGENT if name == "agent" else DATA / name.partition(" ")[0]


def _refusal(name: str, command: str) -> str:
    """Return a part of the sentence with which a command refuses the imported run, or an empty string."""
    if command == "export --model":
        return "is not a run of a model from a folder"
    if name in (*TEXTS, "verl_former", "log") and command in OF_TOKENS:
        return "no loss to recompute"
    return "contains no losses from its trainer" if name in ("verifiers", "agent") and command == "audit" else ""


def test_the_commands_that_take_a_run_file_are_those_of_the_table() -> None:
    taking = {
        name
        for name, parser in parsers().items()
        if any(not one.option_strings and one.dest in ("run", "source") for one in parser._actions)
    }
    assert {command.partition(" ")[0] for command in COMMANDS} == taking


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", IMPORTED)
@pytest.mark.quick_cases(*(f"{name}-{command}" for name in ("completions", "grpo") for command in COMMANDS))
def test_a_command_takes_an_imported_run_or_says_what_it_lacks(
    name: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    convert(source := open_source(_source(name, tmp_path)), tmp_path / "run.grpo")
    code = main([command.partition(" ")[0], "run.grpo", *COMMANDS[command]])
    said = capsys.readouterr()
    refusal = _refusal(name, command)
    assert code == 2 if refusal else code in (0, 1), said.err
    assert refusal in said.err and "damaged" not in said.out + said.err
    match command:
        case "inspect":
            assert f"Mean reward {numbers(source, len(source))['reward_mean']:.3f}" in " ".join(said.out.split())
        case "export":
            rows = list(csv.DictReader(Path("out/series.csv").read_text("utf-8").splitlines()))
            expected = [numbers(source, position) for position in range(1, len(source) + 1)]
            assert [float(row["reward_mean"]) for row in rows] == [values["reward_mean"] for values in expected]
            assert {key for values in expected for key in values} <= rows[0].keys()
        case "rebuild":
            assert main(["verify", "rebuilt.grpo"]) == 0
            rebuilt, imported = open_source(Path("rebuilt.grpo")), open_source(Path("run.grpo"))
            for n in range(1, len(source) + 1):
                assert list(rebuilt.reports(n)) == list(imported.reports(n)) and len(rebuilt) == len(source)
                if name != "log":
                    assert texts(rebuilt, n) == texts(imported, n)


def test_a_run_file_is_recognised_by_its_content_whatever_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    imported, own = tmp_path / "imported.db", tmp_path / "own"
    convert(source := open_source(source_path("completions", tmp_path)), tmp_path / "run.grpo")
    shutil.copy(tmp_path / "run.grpo", imported)
    assert texts(open_source(imported)) == texts(source)
    assert main(["train", "--steps", "2", "--out", str(own)]) == 0
    for command in ("inspect", "verify", "diagnose"):
        assert main([command, str(imported)]) == main([command, str(own)]) == 0, capsys.readouterr().err
    for command, said in (("audit", "This program trained the run"), ("import", "it is in a run file already")):
        assert main([command, str(own), *COMMANDS[command]]) == 2 and said in capsys.readouterr().err


def test_what_a_rebuilt_file_contains_can_be_read(tmp_path: Path) -> None:
    convert(open_source(source_path("completions", tmp_path)), out := tmp_path / "run.grpo")
    with sqlite3.connect(out) as connection:
        connection.execute("DELETE FROM text WHERE id = 2")
    assert main(["verify", str(out)]) == 1
    assert main(["rebuild", str(out), str(tmp_path / "rebuilt.grpo")]) == 0
    rebuilt = open_source(tmp_path / "rebuilt.grpo")
    assert len(rebuilt) == 1 and texts(rebuilt) == texts(open_source(out))


def test_an_imported_run_is_not_listed_as_damaged(tmp_path: Path) -> None:
    convert(open_source(source_path("completions", tmp_path)), tmp_path / "run.grpo")
    (entry,) = entries(tmp_path)
    assert (entry.error, entry.steps) == (None, 2)


def test_an_update_that_cannot_be_read_is_left_out_and_named(tmp_path: Path) -> None:
    from tests.core.trainers.trace_files import copied

    folder = copied("grpo", tmp_path)
    (folder / "rank0/attempt0/step_00000001.parquet").write_bytes(b"PAR1")
    left_out = convert(open_source(folder), out := tmp_path / "run.grpo")
    run = open_source(out)
    assert len(left_out) == 1 and list(run.labels) == [4] and left_out[0] in run.notes


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM meta WHERE key = 'recorded'",
        "UPDATE meta SET value = '{}' WHERE key = 'recorded'",
        "UPDATE meta SET value = '[' WHERE key = 'recorded'",
        "DELETE FROM text",
        "UPDATE text SET text = '{\"table\": 7}'",
        'UPDATE text SET text = \'{"table": {"group": [1]}}\'',
    ],
)
def test_a_damaged_file_ends_in_a_sentence(damage: str, tmp_path: Path) -> None:
    convert(open_source(DATA / "grpo"), out := tmp_path / "run.grpo")
    with sqlite3.connect(out) as connection:
        connection.execute(damage)
    connection.close()
    with pytest.raises(RunFileError, match=r"run\.grpo"):
        open_source(out).completions(1)
