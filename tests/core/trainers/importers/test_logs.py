"""Logs of scalars: each form opens, its numbers are those written, and what is no log of a training is refused.

The files in ``tests/data/sources/logs`` have the column names and shapes of real trainers and invented numbers, which
follow from the step (:data:`NUMBERS`).
"""

from __future__ import annotations

import io
import json
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from grpo_core.commands.cli import main
from grpo_core.errors import GrpoError, NotRecordedError, RunFileError
from grpo_core.foreign.formats import refreshed
from grpo_core.foreign.readers import recorded
from grpo_core.trainers.concepts import CONCEPTS, STEPS, concept_of, names_of, plain
from grpo_core.trainers.health import diagnose
from grpo_core.trainers.health.update import read
from grpo_core.trainers.importers import importer_for, open_source, scalars
from grpo_core.trainers.recorded_series import numbers, of_table
from tests.core.trainers.sources import DATA, written

LOGS = DATA / "logs"
NUMBERS: dict[str, Callable[[int], float]] = {
    "reward": lambda step: step / 100,
    "reward_std": lambda step: step / 50,
    "kl": lambda step: step / 1000,
    "loss": lambda step: step / 10000,
    "length": lambda step: 100 + step,
    "truncated": lambda step: step / 16,
    "grad_norm": lambda step: 0.25,
    "entropy": lambda step: 1 / step,
    "clipped": lambda step: step / 64,
    "dead_groups": lambda step: step / 32,
    "learning_rate": lambda step: 1e-6,
}
STEPS_OF = {"transformers5_console.txt": [1, 2, 3, 4]}
"""Steps of a log that names none: they are counted."""
FORMS = {
    "trl_out": 11,
    "trl_out/checkpoint-8": 11,
    "trl_out/checkpoint-8/trainer_state.json": 11,
    "metrics.jsonl": 4,
    "metrics.parquet": 4,
    "history.json": 3,
    "columns.json": 3,
    "history.table.json": 3,
    "wandb_history.csv": 11,
    "wandb_chart.csv": 2,
    "seeds.csv": 2,
    "verl_file_logger.jsonl": 9,
    "verl_console.log": 9,
    "trl_console.log": 11,
    "transformers5_console.txt": 4,
    "prime_rl.log": 2,
    "logging.jsonl": 4,
    "events": 11,
    "events/events.out.tfevents.1700000000.host.7.0": 11,
}
"""File or folder -> number of recognised quantities."""


@pytest.mark.parametrize("name", FORMS)
def test_each_form_of_a_log_opens_with_the_steps_and_numbers_written(name: str) -> None:
    path = LOGS / name
    assert importer_for(path) == "log"
    run = open_source(path)
    assert list(run.labels) == STEPS_OF.get(name, [2, 4, 6, 8])
    for position, step in enumerate((2, 4, 6, 8), 1):
        update = read(run, position)
        found = {concept: update.reported(concept) for concept in CONCEPTS if update.reported(concept)}
        assert len(found) == FORMS[name]
        for concept, values in found.items():
            assert values[0] == pytest.approx(NUMBERS[concept](step), rel=1e-6), concept
    with pytest.raises(NotRecordedError, match="no completions"):
        run.completions(1)
    with pytest.raises(NotRecordedError, match="no loss to recompute"):
        run.step(1)


def test_a_log_opens_in_the_process_for_untrusted_files_and_keeps_unknown_columns() -> None:
    with recorded(LOGS / "metrics.jsonl", lambda: None) as run:
        assert run.reports(1)[0].numbers["my_own"] == 7.0


@pytest.mark.quick_cases("trl_out", "verl_console.log")
@pytest.mark.parametrize("name", FORMS)
def test_the_command_line_diagnoses_each_form(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(LOGS / name), "--json"]) in (0, 1)
    printed = json.loads(capsys.readouterr().out)
    assert printed["updates"] == 4 and printed["not_looked_at"]
    hidden = [link["text"] for link in printed["chain"] if link["state"] == "cannot be seen"]
    assert any("recorder would show it" in text for text in hidden)


def test_no_name_belongs_to_two_quantities_and_each_is_in_its_compared_form() -> None:
    every = [name for row in CONCEPTS.values() for name in row.names.split()]
    assert len(every) == len(set(every)) and not {*every} & {*STEPS}
    assert all(plain(name) == name and concept_of(f"train/{name}") for name in every)
    assert names_of("reward", ["critic/rewards/mean", "critic/score/mean"])[0] == "critic/score/mean"


def test_of_several_runs_in_a_file_each_opens_by_its_name(tmp_path: Path) -> None:
    run = open_source(LOGS / "seeds.csv")
    assert run.title == "2" and [path.name for path in run.siblings] == ["1"]
    assert open_source(run.siblings[0]).reports(1)[0].numbers["reward"] == 0.0
    with pytest.raises(RunFileError, match="no run “3”; it contains 1, 2"):
        open_source(LOGS / "seeds.csv" / "3")


def state(folder: Path, rows: list[dict[str, Any]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "trainer_state.json").write_text(json.dumps({"global_step": len(rows), "log_history": rows}), "utf-8")
    return folder


def test_where_two_states_disagree_the_newest_counts_and_the_difference_is_said(tmp_path: Path) -> None:
    def rows(count: int, reward: float) -> list[dict[str, Any]]:
        return [{"step": step, "reward": reward, "loss": 0.5} for step in range(1, count + 1)]

    state(tmp_path / "checkpoint-9", [{"step": 9, "reward": 1.0, "loss": 0.0}])
    state(tmp_path / "checkpoint-2", rows(2, 0.5))
    state(tmp_path / "checkpoint-3", rows(3, 0.25))
    run = open_source(tmp_path)
    assert list(run.labels) == [1, 2, 3, 9]
    assert [run.reports(position)[0].numbers["reward"] for position in (1, 2, 3, 4)] == [0.25, 0.25, 0.25, 1.0]
    assert any("2 numbers in checkpoint-2" in note and "reward is 0.25 and not 0.5" in note for note in run.notes)


def test_a_growing_log_is_followed_and_lines_after_a_resume_replace_the_earlier(tmp_path: Path) -> None:
    path = written(tmp_path / "metrics.jsonl", [{"step": s, "reward": 0.1 * s, "loss": 1.0} for s in (1, 2, 3)])
    run = open_source(path)
    with path.open("a") as file:
        file.write("".join(json.dumps({"step": s, "reward": 9.0, "loss": 1.0}) + "\n" for s in (2, 3, 4)))
    assert run.refresh() == 4
    assert [run.reports(p)[0].numbers["reward"] for p in (1, 2, 3, 4)] == [0.1, 9.0, 9.0, 9.0]
    assert any("2 steps of metrics.jsonl were logged again later" in note for note in run.notes)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("sft.json", json.dumps({"log_history": [{"step": 1, "loss": 2.0, "grad_norm": 1.0, "learning_rate": 0.1}]})),
        ("rows.jsonl", json.dumps({"step": 1, "prompt": "1+1", "completion": "2", "reward": 1.0, "kl": 0.1}) + "\n"),
        ("prompts.csv", "question,answer\n1+1,2\n"),
        ("notes.txt", "The reward: 1.0 is high at step 5."),
        ("numbers.json", "[1, 2, 3]"),
    ],
)
def test_what_is_no_log_of_reinforcement_learning_is_not_taken_for_one(name: str, content: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    assert not scalars.probe(tmp_path / name)


def test_a_folder_of_runs_opens_the_newest_and_names_the_others(tmp_path: Path) -> None:
    for name in ("a", "b"):
        shutil.copytree(LOGS / "trl_out", tmp_path / name)
    run = open_source(tmp_path)
    assert {run.title, *(path.name for path in run.siblings)} == {"a", "b"}


def found_in(folder: Path, row: dict[str, float], count: int = 5) -> dict[str, str]:
    """Return the findings on a log with the same numbers in each of its steps: check -> grade."""
    rows = [{"step": 10 * n, "reward": 0.25, "loss": 0.1, "kl": 0.01, **row} for n in range(1, count + 1)]
    run = open_source(state(folder, rows))
    return {finding.check: finding.grade.value for finding in diagnose(run).findings}


@pytest.mark.parametrize(
    ("row", "check", "grade"),
    [
        ({"completions/clipped_ratio": 0.95}, "truncation", "serious"),
        ({"completions/clipped_ratio": 0.6}, "truncation", "notice"),
        ({"frac_reward_zero_std": 1.0}, "dead_groups_logged", "serious"),
        ({"frac_reward_zero_std": 0.7}, "dead_groups_logged", "notice"),
        ({"reward_std": 0.0}, "dead_groups_logged", "serious"),
        ({"clip_ratio/region_mean": 0.97}, "clip_logged", "serious"),
        ({"clip_ratio/low_mean": 0.25, "clip_ratio/high_mean": 0.25}, "clip_logged", "notice"),
        ({"sampling/sampling_logp_difference/mean": 0.2}, "sampler_logged", "serious"),
        ({"frac_reward_zero_std": 0.1, "grad_norm": 0.0}, "gradient_zero", "serious"),
    ],
)
def test_a_few_logged_steps_suffice_for_a_finding(
    row: dict[str, float], check: str, grade: str, tmp_path: Path
) -> None:
    assert found_in(tmp_path, row) == {check: grade}


def test_healthy_figures_and_those_that_are_no_shares_are_no_findings(tmp_path: Path) -> None:
    healthy = {"frac_reward_zero_std": 0.3, "clip_ratio": 0.02, "completions/clipped_ratio": 0.1, "grad_norm": 0.2}
    assert found_in(tmp_path, {**healthy, "reward_std": 0.3}) == {}
    assert found_in(tmp_path, {"frac_reward_zero_std": 12.0, "clip_ratio": 30.0, "clipped_ratio": 95.0}) == {}
    assert found_in(tmp_path, {"completions/clipped_ratio": 0.95}, count=2) == {}


def test_a_mean_number_of_steps_is_not_the_step(tmp_path: Path) -> None:
    rows = "".join(f"{n},0.{n:02},2.{n % 2},0.1\n" for n in range(1, 31))
    (tmp_path / "log.csv").write_text("epoch,avg_reward,avg_steps,kl\n" + rows)
    run = open_source(tmp_path / "log.csv")
    assert list(run.labels) == [*range(1, 31)] and not run.notes


SPREAD, NOTHING = {"reward_std": 0.3, "grad_norm": 0.0}, "whether the rewards of that step differ within groups"


@pytest.mark.parametrize(
    ("every", "row", "found", "said"),
    [
        (1, SPREAD, True, "breaks from step 1 on"),
        (5, SPREAD, False, f"cannot be seen. The gradient norm is that of one step, and {NOTHING}"),
        (0, SPREAD, False, f"cannot be seen. The gradient norm is that of one step, and {NOTHING}"),
        (5, {**SPREAD, "frac_reward_zero_std": 0.5}, True, "at most about 10 of these steps had only such groups"),
        (5, {**SPREAD, "frac_reward_zero_std": 0.8}, False, "not shown (gradient norm: 0)"),
        (5, {"grad_norm": 0.4}, False, "holds (gradient norm: 0.4)"),
    ],
)
def test_a_gradient_norm_is_that_of_the_last_of_the_steps_over_which_the_rest_is_a_mean(
    every: int, row: dict[str, float], found: bool, said: str, tmp_path: Path
) -> None:
    rows = [{**({"step": every * n} if every else {}), "reward": 0.3, "kl": 0.1, **row} for n in range(1, 21)]
    path = tmp_path / "run.log"
    path.write_text("\n".join(str(one) for one in rows))  # without a step, as transformers prints it
    result = diagnose(open_source(path))
    assert ("gradient_zero" in {finding.check for finding in result.findings}) is found
    assert said in next(link.line for link in result.chain if link.name == "gradient")


@pytest.mark.parametrize(
    ("rate", "found", "said"),
    [
        (lambda n: f"{1e-6 * (1 - n / 2400)}", False, ""),  # a schedule that ends at 0
        (lambda n: "0.0" if n > 2000 else "1e-06", True, ""),
        (lambda n: "0.000", False, "so few decimals that some are 0"),  # as verl printed any rate below 0.0005
    ],
    ids=["to 0", "at 0", "three decimals"],
)
def test_a_learning_rate_of_0_is_neither_the_end_of_a_schedule_nor_a_rounded_number(
    rate: Callable[[int], str], found: bool, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "run.log"
    path.write_text("".join(f"step:{n} - critic/score/mean:0.{n:04} - actor/lr:{rate(n)}\n" for n in range(1, 2400)))
    run = open_source(path)
    assert [finding.check for finding in diagnose(run).findings] == ["rate_zero"] * found
    assert said in " ".join(run.notes) and bool(run.notes) == bool(said)


def test_a_list_that_was_cut_off_while_it_was_written_is_read_up_to_there(tmp_path: Path) -> None:
    rows = [{"step": n, "reward": n / 10, "kl": 0.1} for n in range(1, 6)]
    path = tmp_path / "log.json"
    path.write_text(json.dumps(rows, indent=1).partition('"step": 5')[0])
    run = open_source(path)
    assert list(run.labels) == [1, 2, 3, 4] and "only the 4 rows before that are read" in run.notes[0]


def test_the_chain_takes_its_figures_from_the_log_and_says_what_would_show_the_rest(tmp_path: Path) -> None:
    rows = [{"step": n, "reward": n / 20, "reward_std": 0.3, "grad_norm": 1.0} for n in range(1, 13)]
    links = {link.name: link for link in diagnose(open_source(state(tmp_path, rows))).chain}
    assert {name: links[name].state.value for name in ("rewards", "gradient", "reward")} == dict.fromkeys(
        ("rewards", "gradient", "reward"), "holds"
    )
    assert "recorder would show it" in links["push"].line and "cannot be seen" in links["push"].line


@pytest.mark.parametrize("source", ["trl", "verl", "verifiers"])
def test_completions_and_a_log_in_one_folder_are_one_run_joined_by_step(source: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(DATA / source, tmp_path / "out"))
    rows = open_source(folder)
    labels = list(rows.labels)
    log = [{"step": s, "reward": 0.5, "loss": 0.1, "entropy": 1.5, "kl": 0.1} for s in (*labels, labels[-1] + 5)]
    if source == "trl":
        state(folder / "checkpoint-9", log)
    else:
        written(folder / "metrics.jsonl", log)
    run = open_source(folder)
    assert list(run.labels) == [*labels, labels[-1] + 5]
    assert run.completions(1).completions == rows.completions(1).completions
    assert [read(run, position).logged("entropy") for position in range(1, len(run) + 1)] == [1.5] * len(run)
    with pytest.raises(NotRecordedError, match="No completions are recorded at this step"):
        run.completions(len(run))
    series = numbers(run, 1)
    assert series["trainer/reward"] == 0.5
    assert series["reward_mean"] == of_table(rows.completions(1))["reward_mean"], "the completions themselves count"
    last = numbers(run, len(run))
    assert last["reward_mean"] == 0.5 == last["trainer/reward"], "what only the log has is taken from it"
    assert any("The trainer's reports are those of" in note for note in run.notes)
    with recorded(folder, lambda: None) as remote:
        assert list(remote.labels) == list(run.labels) and remote.reports(1)[0].numbers["entropy"] == 1.5


def test_a_log_of_other_steps_is_not_joined(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(DATA / "trl", tmp_path / "out"))
    state(folder, [{"step": 900, "reward": 0.5, "loss": 0.1}])
    assert 900 not in open_source(folder).labels


def test_where_a_state_and_another_log_disagree_the_state_counts_and_the_difference_is_said(tmp_path: Path) -> None:
    state(tmp_path, [{"step": step, "reward": 0.25, "loss": 0.5} for step in (1, 2)])
    rows = [{"step": step, "train/reward": 0.25 * step, "train/entropy": 2.0} for step in (1, 2)]
    written(tmp_path / "metrics.jsonl", rows)
    run = open_source(tmp_path)
    assert [dict(run.reports(position)[0].numbers) for position in (1, 2)] == [
        {"reward": 0.25, "loss": 0.5, "train/entropy": 2.0}
    ] * 2
    assert any("1 number in metrics.jsonl differs" in note and "0.25 and not 0.5" in note for note in run.notes)


OWN = "it,goodness\n" + "".join(f"{step},{step / 10}\n" for step in (5, 10, 15))


def test_columns_of_ones_own_are_read_by_the_meanings_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "own.csv"
    path.write_text(OWN)
    assert main(["diagnose", str(path)]) == 2
    assert "say so: grpo-lab diagnose FILE --columns" in capsys.readouterr().err
    with recorded(path, lambda: None, "it=step,goodness=reward") as run:
        assert list(run.labels) == [5, 10, 15] and run.reports(2)[0].numbers == {"reward": 1.0}
    for wrong in ("goodness=good", "goodness", "=reward"):
        with pytest.raises(GrpoError, match="is not a column and its meaning"):
            open_source(path, columns=wrong)
    with pytest.raises(RunFileError, match="has no column “badness”"):
        open_source(path, columns="badness=reward")


@pytest.mark.parametrize(
    ("name", "columns"),
    [("trl_console.log", ""), ("verl_console.log", ""), ("history.json", ""), ("wandb_history.csv", ""),
     ("metrics.jsonl", ""), ("own", "it=step,goodness=reward")],
)  # fmt: skip # table
@pytest.mark.quick_cases("verl_console.log-", "own-it=step,goodness=reward")
def test_a_pasted_log_is_answered(
    name: str, columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = OWN if name == "own" else (LOGS / name).read_text("utf-8")
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert main(["ask", "-", *(["--columns", columns] if columns else [])]) == 0
    answer = capsys.readouterr().out
    assert ("3 updates" if name == "own" else "4 updates") in answer
    assert "no link from the reward to a better policy breaks" in answer and "Not seen: " in answer


def test_the_answer_begins_with_the_link_that_breaks_and_ends_with_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"step": n, "reward": 0.0, "reward_std": 0.0, "loss": 0.0} for n in range(1, 13)]
    assert main(["ask", str(state(tmp_path / "out", rows) / "trainer_state.json")]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "breaks" in lines[1] and "the standard deviation of the rewards is 0" in lines[1]
    assert lines[-1].startswith("Not seen: Completions get advantages.")


def test_an_empty_paste_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(" \n"))
    assert main(["ask", "-"]) == 2 and "Nothing was pasted." in capsys.readouterr().err


def test_a_damaged_log_ends_in_a_sentence_or_opens(tmp_path: Path) -> None:
    numbers = random.Random(7)
    for file in sorted(path for path in LOGS.rglob("*") if path.is_file()):
        for _ in range(4):
            data = bytearray(file.read_bytes()[: numbers.randrange(40, file.stat().st_size)])
            place = numbers.randrange(len(data))
            data[place:place] = numbers.choice([b"9" * 400, b"[[[[", b'"', b"1e999", b"\0" * 9, b"\xff" * 8, b"NaN"])
            copy = tmp_path / file.name
            copy.write_bytes(data)
            with suppress(RunFileError):
                diagnose(open_source(copy))


SWIFT = "{'reward': 0.5, 'loss': 0.1, 'global_step/max_steps': '%s/9'}\n"
PRINTED: dict[str, tuple[str, dict[int, dict[str, float]]]] = {
    "a line of verl that a terminal broke.log": (
        "(TaskRunner pid=9, ip=10.0.0.1) step:3\n - actor/entropy:0.5\n - critic/score/mean:np.float64(0.25)\nend\n",
        {3: {"actor/entropy": 0.5, "critic/score/mean": 0.25}},
    ),
    "lines of a dict that a terminal broke.txt": (
        "5%| | 1/20 [05:56]{'loss': 0.05, 'rewa\nrd': 0.1579\n7, 'kl'\n: 0.5}\n"
        "20%| | 5/20 [07:00]{'loss': 1, 'reward': 2}",
        {1: {"loss": 0.05, "reward": 0.15797, "kl": 0.5}, 5: {"loss": 1.0, "reward": 2.0}},
    ),
    "ms-swift names its step with the total.log": (
        SWIFT % 3 + SWIFT % 6,
        {3: {"reward": 0.5, "loss": 0.1}, 6: {"reward": 0.5, "loss": 0.1}},
    ),
    "a row that ends early, and an empty line.csv": (
        "reward;kl;a - loss;a - kl\n\n0.5;0.1\n0.75;0.2;3.0;0.4\n",
        {1: {"reward": 0.5, "kl": 0.1}, 2: {"reward": 0.75, "kl": 0.4, "loss": 3.0}},
    ),
}
"""Name of a file -> what it contains, and the numbers of its steps."""


@pytest.mark.parametrize("name", PRINTED)
def test_a_printed_log_loses_no_number(name: str, tmp_path: Path) -> None:
    text, numbers = PRINTED[name]
    (tmp_path / name).write_text(text)
    run = open_source(tmp_path / name)
    assert {label: run.reports(place)[0].numbers for place, label in enumerate(run.labels, 1)} == numbers


def test_a_chart_of_wandb_with_several_runs_holds_each(tmp_path: Path) -> None:
    names = [f"{run} - train/{name}" for run in ("a/b", "c - d") for name in ("reward", "reward__MIN", "kl")]
    rows = [["Step", *names], *([str(step), *(str(step * n) for n in range(1, 7))] for step in (1, 2))]
    (tmp_path / "chart.csv").write_text("\n".join(",".join(f'"{cell}"' for cell in row) for row in rows))
    run = open_source(tmp_path / "chart.csv")
    assert run.title == "c - d" and [path.name for path in run.siblings] == ["a_b"]
    assert run.reports(2)[0].numbers == {"train/reward": 8.0, "train/reward__MIN": 10.0, "train/kl": 12.0}
    assert open_source(run.siblings[0]).reports(2)[0].numbers["train/reward"] == 2.0


@pytest.mark.parametrize("name", ["events/events.out.tfevents.1700000000.host.7.0", "wandb_history.csv"])
def test_a_log_that_grows_in_a_folder_is_noticed(name: str, tmp_path: Path) -> None:
    copy = tmp_path / Path(name).name
    whole = (LOGS / name).read_bytes()
    copy.write_bytes(whole[: len(whole) // 2])
    run = open_source(tmp_path)
    stamp, _, _ = refreshed(run, None)
    assert refreshed(run, stamp)[1] is None and 1 <= len(run) < 4
    copy.write_bytes(whole)
    fresh = refreshed(run, stamp)[1]
    assert fresh is not None and list(fresh.labels) == [2, 4, 6, 8]
