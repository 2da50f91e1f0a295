"""Sources of text and rewards: what each contains, what it reports as missing, and the effects of damage."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grpo_core.errors import GrpoError, NotRecordedError, RunFileError
from grpo_core.trainers.health.update import read
from grpo_core.trainers.importers import IMPORTERS, importer_for, open_source
from grpo_core.trainers.importers.text_run import consecutive_groups, equal_groups
from grpo_core.trainers.importers.trl_table import table
from tests.core.trainers.sources import AGENT, DATA, SOURCES, TEXTS, lines_of, source_path, written


def verl_row(uid: str = "0_0_0", **changed: Any) -> dict[str, Any]:
    return {"input": "1+1=", "output": "2", "gts": "2", "score": 1.0, "step": 1, "uid": uid} | changed


@pytest.mark.parametrize("name", SOURCES)
def test_each_format_is_known_by_its_importer_alone(name: str, tmp_path: Path) -> None:
    path = source_path(name, tmp_path)
    assert importer_for(path) == name
    special = [key for key, importer in IMPORTERS.items() if importer.probe(path) and not importer.general]
    assert special == ([] if IMPORTERS[name].general else [name])


@pytest.mark.parametrize("name", SOURCES)
def test_completions_stand_in_whole_groups_with_their_rewards(name: str, tmp_path: Path) -> None:
    run = open_source(source_path(name, tmp_path))
    found = run.completions(len(run))
    rows = len(found.rewards)
    counted = np.ones(rows, bool) if found.counted is None else found.counted
    assert len(found.prompts) == len(found.completions) == len(found.group) == rows
    assert set(np.bincount(found.group[counted])) == {4} and run.settings.learner.group_size == 4
    assert np.isfinite(found.rewards).all()


def test_the_right_answers_are_read_where_a_trainer_writes_them(tmp_path: Path) -> None:
    rows = [verl_row("0_0_0"), verl_row("0_1_0", gts=7), verl_row("0_2_0", gts=None), verl_row("0_3_0", gts={"a": 1})]
    assert open_source(written(tmp_path / "1.jsonl", rows)).completions(1).answers == ("2", "7", None, None)
    found = table({"prompt": ["p"], "completion": ["c"], "r": [0.5], "solution": ["#### 3"]}, "a table")
    assert found.answers == ("#### 3",) and found.reward_names == ("r",)
    assert table({"prompt": ["p"], "completion": ["c"], "r": [0.5]}, "a table").answers is None


@pytest.mark.parametrize("name", TEXTS)
def test_a_source_of_texts_says_what_a_step_would_need(name: str, tmp_path: Path) -> None:
    with pytest.raises(NotRecordedError, match="no loss to recompute"):
        open_source(source_path(name, tmp_path)).step(1)


def test_parquet_and_trackio_of_one_run_hold_the_same_completions(tmp_path: Path) -> None:
    parquet, trackio = (open_source(source_path(name, tmp_path)) for name in ("completions", "trackio"))
    assert list(parquet.labels) == list(trackio.labels) == [1, 2]
    for position in (1, 2):
        one, other = parquet.completions(position), trackio.completions(position)
        assert one.completions == other.completions and one.reward_names == other.reward_names
        assert one.advantage is not None and other.advantage is not None
        assert np.allclose(one.advantage, other.advantage) and np.array_equal(one.group, other.group)


def test_the_advantages_in_the_table_are_those_of_the_groups_that_were_found() -> None:
    found = open_source(DATA / "trl").completions(1)
    assert found.advantage is not None
    for g in np.unique(found.group):
        rewards = found.rewards[found.group == g]
        expected = (rewards - rewards.mean()) / (rewards.std(ddof=1) + 1e-4)
        assert found.advantage[found.group == g] == pytest.approx(expected, abs=1e-5)


def test_trackio_gives_the_report_of_the_same_step_and_the_settings_of_the_trainer(tmp_path: Path) -> None:
    run = open_source(source_path("trackio", tmp_path))
    found = run.completions(2)
    numbers = run.reports(2)[0].numbers
    assert numbers["reward"] == pytest.approx(found.rewards.mean(), abs=1e-6)
    assert run.settings.objective.reduction == "token" and run.settings.recorded.max_tokens == 10
    assert run.settings.recorded.reward_names == ("digits", "shortness")
    assert run.settings.learner.mu == 1 and run.settings.learner.temperature == 1.0


def several_runs(folder: Path, names: tuple[str, ...] = ("first", "second", "second", "a/../b")) -> Path:
    """Create a trackio database with runs of these names, each a copy of the real one, logged one after another."""
    path = source_path("trackio", folder)
    with closing(sqlite3.connect(path)) as connection, connection:
        rows = connection.execute("SELECT timestamp, step, metrics FROM metrics ORDER BY id").fetchall()
        connection.execute("DELETE FROM metrics")
        for number, name in enumerate(names):
            connection.executemany(
                "INSERT INTO metrics (run_id, run_name, timestamp, step, metrics) VALUES (?, ?, ?, ?, ?)",
                [(f"id{number}", name, *row) for row in rows],
            )
    return path


def test_of_several_runs_in_a_trackio_database_the_newest_is_shown_and_each_other_opens_by_its_path(
    tmp_path: Path,
) -> None:
    path = several_runs(tmp_path)
    newest = open_source(path)
    assert newest.title == "a_.._b" and len(newest.siblings) == 3
    assert any("4 runs" in note and newest.siblings[0].name in note for note in newest.notes)
    titles = [open_source(sibling).title for sibling in newest.siblings]
    assert titles[-1] == "first" and len(set(titles)) == 3, "two runs of one name are told apart"
    one = open_source(path / "first")
    assert len(one) == 2 and not one.notes and newest.path not in one.siblings and len(one.siblings) == 3


def test_a_run_that_a_database_does_not_hold_is_refused_with_those_that_it_has(tmp_path: Path) -> None:
    with pytest.raises(RunFileError, match=r"no run “third”; it contains .*first"):
        open_source(several_runs(tmp_path) / "third")


def test_reading_a_trackio_database_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = source_path("trackio", tmp_path)
    open_source(path).completions(1)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_a_branch_is_a_row_that_counts_once_in_its_group() -> None:
    found = open_source(DATA / SOURCES["verifiers"]).completions(1)
    assert found.counted is not None and found.counted.sum() == 8 and len(found.counted) == 9
    extra = int(np.flatnonzero(~found.counted)[0])
    assert found.completions[extra] == "other" and found.rewards[extra] == found.rewards[extra - 1]


def test_numbers_of_verifiers_tokens_are_one_for_each_sampled_token() -> None:
    run = open_source(DATA / SOURCES["verifiers"])
    found = run.completions(1)
    assert found.length is not None and found.sampling_logp is not None and found.training_logp is not None
    assert [len(x) for x in found.sampling_logp] == found.length.tolist() == [len(x) for x in found.training_logp]
    assert found.sampling_logp[0][0] == -0.1235 and any("four decimals" in note for note in run.notes)


def _unreadable_end(name: str, folder: Path) -> Path:
    """Return a copy of a source in which the last update cannot be read."""
    if name == "verifiers":
        end = [line for line in lines_of(AGENT) if line["run"]["work"]["step"] == 2]
        whole = [line for line in lines_of(AGENT) if line not in end]
        return written(folder / "traces.jsonl", [*whole, *({"run": line["run"]} for line in end)])
    path = Path(shutil.copytree(DATA / SOURCES[name], folder / name))
    last = max(path.rglob("*.parquet"))
    content = last.read_bytes()
    last.write_bytes(content[:4] + bytes(len(content) - 8) + content[-4:])
    return path


@pytest.mark.parametrize("name", ["completions", "verifiers"])
def test_an_unreadable_last_update_does_not_refuse_the_others(name: str, tmp_path: Path) -> None:
    run = open_source(_unreadable_end(name, tmp_path))
    assert list(run.labels) == [1, 2] and run.settings.learner.group_size > 1
    assert len(run.completions(1).rewards) >= 4
    with pytest.raises(RunFileError):
        run.completions(2)


def test_evaluation_among_the_episodes_of_training_is_left_out(tmp_path: Path) -> None:
    lines = lines_of(DATA / SOURCES["verifiers"])
    lines[0]["run"]["work"]["type"] = "eval"
    lines[7]["run"]["work"]["step"] = 2
    run = open_source(written(tmp_path / "traces.jsonl", lines))
    assert list(run.labels) == [1, 2]
    assert len(run.completions(1).rewards) == 6 and len(run.completions(2).rewards) == 2
    assert any("1 evaluation episode" in note for note in run.notes)


def test_a_growing_file_of_episodes_is_read_on_from_where_it_ended(tmp_path: Path) -> None:
    lines = (DATA / SOURCES["verifiers"]).read_text("utf-8").splitlines(keepends=True)
    path = tmp_path / "traces.jsonl"
    path.write_text("".join([*lines[:3], "no JSON\n", lines[3].rstrip("\n")]), "utf-8")
    run = open_source(path)
    assert len(run.completions(1).rewards) == 4, "a whole last line without its end counts"
    with path.open("a", encoding="utf-8") as file:
        file.write("\n" + "".join(lines[4:]) + "neither\n")
    run.refresh()
    assert run.completions(1).rewards.tolist() == open_source(path).completions(1).rewards.tolist()
    assert len(run.completions(1).rewards) == 9
    assert [note for note in run.notes if "not JSON" in note] == [
        f"Line {number} of traces.jsonl is not JSON and is left out." for number in (4, 10)
    ]
    path.write_text(lines[0], "utf-8")
    run.refresh()
    assert len(run.completions(1).rewards) == 1, "a shorter file is another one"


def test_prime_rls_folders_are_steps(tmp_path: Path) -> None:
    for step in (2, 10):
        folder = tmp_path / "rollouts" / f"step_{step}" / "train" / "all"
        folder.mkdir(parents=True)
        shutil.copy(DATA / SOURCES["verifiers"], folder / "traces.jsonl")
    run = open_source(tmp_path)
    assert list(run.labels) == [2, 10] and len(run.completions(2).rewards) == 9


def test_a_uid_names_the_group_and_without_one_the_prompt_does() -> None:
    present, former = open_source(DATA / "verl"), open_source(DATA / "verl_former")
    assert present.completions(1).group.tolist() == [0] * 4 + [1] * 4
    assert former.completions(1).group.tolist() == [0, 1] * 4
    assert any("do not name groups" in note for note in former.notes) and not present.notes


@pytest.mark.parametrize(
    ("end", "said"),
    [
        (b"\n", ""),
        (b"", ""),
        (b"\nnot JSON", "incomplete"),
        (b'\n{"half": ', "incomplete"),
        (b'\n{"input": "\xff\xfe", "output": "", "score": 1}\n', "Line 5 of 1.jsonl"),
    ],
)
def test_a_last_line_that_cannot_be_read_is_left_out_and_named(end: bytes, said: str, tmp_path: Path) -> None:
    path = written(tmp_path / "1.jsonl", [verl_row(f"0_{i}_0") for i in range(4)], end="")
    path.write_bytes(path.read_bytes() + end)
    run = open_source(tmp_path)
    assert len(run.completions(1).rewards) == 4
    assert len(run.notes) == bool(said) and all(said in note for note in run.notes)


def test_a_file_with_groups_of_another_size_is_named_as_a_possible_evaluation(tmp_path: Path) -> None:
    for step, size in ((1, 4), (2, 1), (3, 4)):
        written(tmp_path / f"{step}.jsonl", [verl_row(f"{s}_{r}_0") for s in range(3) for r in range(size)])
    run = open_source(tmp_path)
    for position in (1, 2, 3):
        run.completions(position)
    assert next(note for note in run.notes if "evaluation" in note).startswith("Step 2 has groups of 1")


def counted(folder: Path) -> list[int]:
    """Return how many completions of each update the checks count."""
    run = open_source(folder)
    tables = [read(run, position).table for position in range(1, len(run) + 1)]
    return [0 if table is None else len(table.rewards) for table in tables]


def test_a_batch_that_trl_logged_several_times_is_named_and_counted_once(tmp_path: Path) -> None:
    shutil.copytree(DATA / "trl/completions", tmp_path, dirs_exist_ok=True)
    once = counted(tmp_path)
    for number in (3, 4, 5):
        shutil.copy(tmp_path / "completions_00002.parquet", tmp_path / f"completions_0000{number}.parquet")
    run = open_source(tmp_path)
    assert run.completions(3).repeated, "whatever was looked at before"
    assert [run.completions(position).repeated for position in range(1, 6)] == [False] * 2 + [True] * 3
    assert sum("repeat the completions" in note for note in run.notes) == 1
    assert counted(tmp_path) == [*once, 0, 0, 0]


def test_new_files_appear_when_a_source_is_looked_at_again(tmp_path: Path) -> None:
    written(tmp_path / "1.jsonl", [verl_row()])
    run = open_source(tmp_path)
    written(tmp_path / "2.jsonl", [verl_row(step=2)])
    assert run.refresh() == 2 and list(run.labels) == [1, 2]


@pytest.mark.parametrize(
    ("rewrite", "words"),
    [
        ("ALTER TABLE metrics RENAME TO other; CREATE VIEW metrics AS SELECT * FROM other", "views"),
        ("DROP TABLE metrics", "not one of trackio's"),
        ("DELETE FROM metrics", "contains no run"),
        ("ALTER TABLE metrics RENAME COLUMN metrics TO other", "cannot be read as a trackio database"),
    ],
)
def test_a_database_that_is_none_of_trackios_is_refused_in_a_sentence(rewrite: str, words: str, tmp_path: Path) -> None:
    path = source_path("trackio", tmp_path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(rewrite)
    with pytest.raises(RunFileError, match=words):
        open_source(path)


def test_a_statement_that_would_never_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grpo_core.runs.database.PROCESSOR_SECONDS", 0.0)
    path = source_path("trackio", tmp_path)
    with closing(sqlite3.connect(path)) as connection, connection:
        rows = [(f"run {i}", f"run {i}", "{}") for i in range(5000)]
        connection.executemany(
            "INSERT INTO metrics (run_id, run_name, metrics, step, timestamp) VALUES (?, ?, ?, 0, '')", rows
        )
    with pytest.raises(RunFileError, match="interrupted"):
        open_source(path)


@pytest.mark.parametrize("name", ["completions", "trackio"])
@pytest.mark.parametrize("kept", [0.3, 0.9])
def test_a_file_that_was_cut_short_ends_in_a_sentence(name: str, kept: float, tmp_path: Path) -> None:
    original = source_path(name, tmp_path)
    file = original / "completions/completions_00001.parquet" if original.is_dir() else original
    copy = tmp_path / "cut" / file.name
    copy.parent.mkdir()
    copy.write_bytes(file.read_bytes()[: int(kept * file.stat().st_size)])
    with pytest.raises(GrpoError, match=copy.name):
        open_source(copy)


@pytest.mark.parametrize(
    "trace",
    [
        {"nodes": [{"parent": 5, "sampled": True, "message": {}}]},
        {"nodes": [{"parent": 0, "sampled": True, "message": {}}]},
        {"nodes": "many"},
        {"nodes": [{"sampled": True, "mask": [True], "logprobs": ["x"]}]},
        {"nodes": [{"sampled": True, "mask": 7}]},
        {},
    ],
)
def test_a_trace_that_verifiers_does_not_write_is_left_out_and_counted(trace: dict[str, Any], tmp_path: Path) -> None:
    good = lines_of(DATA / SOURCES["verifiers"])[0]
    bad = dict(good, traces=[trace])
    run = open_source(written(tmp_path / "traces.jsonl", [good, bad]))
    assert len(run.completions(1).rewards) == 1
    assert any("1 trace is not what verifiers writes" in note for note in run.notes)


def test_columns_that_are_no_numbers_with_decimals_are_no_rewards() -> None:
    columns: dict[str, list[Any]] = {
        "step": [1, 1],
        "prompt": ["a", "a"],
        "completion": ["b", [{"role": "assistant", "content": "c"}]],
        "right": [1.0, None],
        "note": ["x", "y"],
        "tries": [1, 2],
        "advantage": [0.5, -0.5],
    }
    found = table(columns, "here")
    assert found.reward_names == ("right",) and found.rewards[0] == 1 and np.isnan(found.rewards[1])
    assert found.completions[1] == '[{"role": "assistant", "content": "c"}]'


def test_groups_are_found_in_the_order_of_the_rows() -> None:
    assert consecutive_groups(["a", "a", "b", "b", "a"]).tolist() == [0, 0, 1, 1, 2]
    assert consecutive_groups(["a"] * 4, 2).tolist() == [0, 0, 1, 1]
    assert equal_groups(["b", "a", "b"]).tolist() == [0, 1, 0]


def test_trackio_reports_are_numbered_by_the_trainer_and_not_by_their_count(tmp_path: Path) -> None:
    path = source_path("trackio", tmp_path)
    with closing(sqlite3.connect(path)) as connection, connection:
        (run,) = connection.execute("SELECT run_id FROM metrics LIMIT 1").fetchone()
        connection.execute("DELETE FROM metrics")
        for counted, step in enumerate((300, 600)):
            report = {"train/reward": step / 1000, "train/loss": 0.1, "train/global_step": step}
            connection.execute(
                "INSERT INTO metrics (run_id, run_name, timestamp, step, metrics) VALUES (?, 'r', '', ?, ?)",
                (run, counted, json.dumps(report)),
            )
    opened = open_source(path)
    assert list(opened.labels) == [300, 600]
    assert [opened.reports(position)[0].numbers["reward"] for position in (1, 2)] == [0.3, 0.6]
