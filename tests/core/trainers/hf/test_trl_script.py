"""Settings exported as a script for TRL: valid Python that states the differences and refuses what TRL cannot do. A
sweep lists the differences of its runs in a table, and their traces are read as series. Where TRL is installed, the
script trains on differing rewards, and its trace holds the rewards and losses computed here.
"""

from __future__ import annotations

import ast
import contextlib
import csv
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grpo_core import recompute
from grpo_core.commands.cli import main
from grpo_core.config import PRESETS, Settings, folder_settings, language_settings
from grpo_core.errors import RunFileError, SettingsError
from grpo_core.foreign.recording import Source
from grpo_core.lm import word_tasks as words
from grpo_core.lm.rewards import PromptSource, parts, rewards
from grpo_core.queue.queue import Queue, planned
from grpo_core.traces.recorders import RECORDER, RECORDER_SOURCE
from grpo_core.trainers.hf.folder_policy import FolderPolicy
from grpo_core.trainers.hf.trl_script import LOSSES, config, script
from grpo_core.trainers.importers import open_source
from grpo_core.trainers.importers.trace import Trace
from grpo_core.trainers.recorded_series import numbers
from grpo_core.trainers.trl_sweep import ARRAY, SCRIPT, TABLE, TRACES, collected, trace_of, write
from tests.core.trainers.hf.tiny import small
from tests.core.trainers.hf.tiny_gguf import saved_gguf
from tests.core.trainers.trace_files import DATA

ENDINGS = {
    "llama": ["q_proj", "k_proj", "v_proj", "o_proj"],
    "qwen2": ["q_proj", "k_proj", "v_proj", "o_proj"],
    "gpt2": ["c_attn", "attn.c_proj"],
}
"""Kind of model -> names of its attention layers."""


@pytest.fixture(scope="module")
def base(folders: dict[str, Path]) -> Settings:
    """The default settings for a tiny Llama."""
    return folder_settings(str(folders["llama"]))


def test_the_script_is_python_and_names_model_prompts_and_adapter(base: Settings) -> None:
    text = script(base)
    ast.parse(text)
    assert f"MODEL, RUN, ROWS = {base.model.folder!r}" in text
    assert "What is 9 plus" in text
    assert "r=8, lora_alpha=16" in text
    assert "loss_type='grpo'" in text
    assert "top_k=0" in text


def prompts_of(text: str) -> list[tuple[str, str, str]]:
    """Return the questions, answers and system prompts in a script."""
    named = [node for node in ast.parse(text).body if isinstance(node, ast.Assign)]
    (found,) = [node.value for node in named if ast.unparse(node.targets[0]) == "PROMPTS"]
    prompts: list[tuple[str, str, str]] = ast.literal_eval(found)
    return prompts


def test_every_prompt_is_written_once_and_no_held_out_one(base: Settings) -> None:
    text = script(base)
    prompts = prompts_of(text)
    kept_aside = {prompt.text for prompt in words.held_out("sums", np.random.default_rng(0), words.HELD_OUT)}
    assert len(prompts) == len(set(prompts)) == words.LARGEST**2 - words.HELD_OUT
    assert not {question for question, *_ in prompts} & kept_aside
    assert len(text.splitlines()) < 200


def test_own_prompts_are_all_written_whatever_they_hold(base: Settings, tmp_path: Path) -> None:
    rows = [(f"{n}: “quoted”, 'so' \\ and {{braces}}", f"a{n}", "Be brief.") for n in range(10)]
    lines = [json.dumps({"prompt": question, "answer": answer}) for question, answer, _ in rows]
    (tmp_path / "own.jsonl").write_text("\n".join(lines), encoding="utf-8")
    own = {"task.problem": "questions", "task.file": str(tmp_path / "own.jsonl"), "task.checker": "exact"}
    own |= {"task.system": "Be brief.", "task.thinking": "off"}
    text = script(base.replace(own))
    assert prompts_of(text) == rows
    assert "chat_template_kwargs={'enable_thinking': False, 'thinking': False}" in text
    with pytest.raises(SettingsError, match="does not compare answers in this way"):
        script(base.replace(own | {"task.checker": "final"}))


@pytest.mark.parametrize("kind", ENDINGS)
def test_the_adapter_of_the_script_is_on_the_layers_that_ours_is_on(kind: str, folders: dict[str, Path]) -> None:
    settings = small(folders[kind])
    tree = ast.parse(script(settings))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "LoraConfig"]
    (targets,) = [ast.literal_eval(word.value) for word in calls[0].keywords if word.arg == "target_modules"]
    assert targets == ENDINGS[kind]
    ours = FolderPolicy(settings).model.peft_config["default"].target_modules
    assert set(ours) == set(targets)


def test_a_gguf_file_is_refused_since_trl_trains_from_a_folder(folders: dict[str, Path], tmp_path: Path) -> None:
    path = saved_gguf(folders["llama"], tmp_path / "model.gguf")
    with pytest.raises(SettingsError, match="instead of a GGUF file"):
        script(folder_settings(str(path)))


def test_the_reward_of_the_script_is_that_of_the_task(base: Settings) -> None:
    source = script(base.replace({"task.problem": "form", "task.form_weight": 0.5}))
    (function,) = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    space: dict[str, Any] = {}
    exec("import re, math\n" + ast.unparse(function), space)
    said = ["7 + 5 = 12.", "Answer: 12", "Answer: 13", "twelve", "not 1,012"]
    paid = space["reward"]([[{"content": text}] for text in said], ["12"] * 5)
    assert paid == [1.0, 1.5, 0.5, 0.0, 0.0]


@pytest.mark.parametrize(
    "changes",
    [
        {"objective.baseline": "leave_one_out"},
        {"objective.kl": "k1", "objective.beta": 0.1},
        {"objective.kl": "k2", "objective.beta": 0.1},
        {"objective.std": "population"},
        {"objective.surrogate": "gmpo"},
        {"objective.level": "sequence_sum"},
        {"learner.resample_dead": True},
        {"optimizer.kind": "sgd"},
        {"objective.log_ratio_limit": 20.0},
        {"task.brevity_weight": 0.1},
        {"task.format_weight": 0.1},
        {"task.words": "so", "task.words_weight": -0.1},
    ],
    ids=str,
)
def test_what_trl_cannot_do_is_refused_in_a_sentence(changes: dict[str, Any], base: Settings) -> None:
    with pytest.raises(SettingsError, match=r"TRL|AdamW"):
        script(base.replace(changes))


def test_the_shipped_model_is_no_folder() -> None:
    with pytest.raises(SettingsError, match="choose one"):
        script(language_settings())


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_is_written_or_refused(preset: str, base: Settings) -> None:
    settings, written = base.replace({}), ""
    with contextlib.suppress(SettingsError):
        settings = PRESETS[preset].applied_to(base)
        written = script(settings)
    ast.parse(written)
    if not written:
        return
    assert config(settings)["loss_type"] in LOSSES.values()


OWN = Path(__file__).parents[4] / ".venv-trl" / "bin" / "python"
PYTHON = os.environ.get("GRPO_LAB_TRL_PYTHON", str(OWN) if OWN.exists() else "")
"""Python of TRL's environment (``make .venv-trl/.trl`` in the source folder), or any other Python that has TRL."""
STEPS = 3


@pytest.mark.long
@pytest.mark.skipif(not PYTHON, reason="TRL is not installed: make .venv-trl/.trl")
@pytest.mark.parametrize(
    "changes", [{}, {"model__adapter_rank": 0, "objective__beta": 0.1, "objective__reduction": "token"}], ids=str
)
def test_the_script_trains_with_trl_on_rewards_that_differ(
    changes: dict[str, Any], folders: dict[str, Path], tmp_path: Path
) -> None:
    rows = [{"prompt": f"Say a letter, {n} times.", "answer": "[a-m]"} for n in range(6)]
    (tmp_path / "own.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    settings = small(
        folders["llama"],
        task__problem="questions",
        task__file=str(tmp_path / "own.jsonl"),
        task__checker="regex",
        task__form="[A-M]",
        task__form_weight=0.5,
        optimizer__learning_rate=1e-2,
        learner__mu=1,
        **changes,
    )
    (tmp_path / "train.py").write_text(script(settings), encoding="utf-8")
    shutil.copyfile(RECORDER_SOURCE, tmp_path / RECORDER)
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [PYTHON, "train.py", "--steps", str(STEPS)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    run = Trace(tmp_path / "runs" / "trl")
    assert len(run) == STEPS
    source, paid = PromptSource(settings.language, None), []
    for number in range(1, STEPS + 1):
        step, table = run.step(number), run.completions(number)
        assert set(np.bincount(step.group)) == {settings.learner.group_size}
        assert len(step.group) == settings.learner.group_size * settings.language.prompts
        prompt = source.drawn(np.random.default_rng(0))[0]  # all are judged by the same rule
        read = [json.loads(text or "")[0]["content"] for text in table.completions]
        judged = np.array([parts(settings.language, prompt, text, 0) for text in read])
        assert step.rewards == pytest.approx(rewards(settings.language, judged)), "paid as it is paid here"
        logged = {report.step: report.numbers["loss"] for report in run.reports(number) if "loss" in report.numbers}
        terms = [recompute.terms(step, passed) for passed in range(step.passes)]
        size = sum(float(np.abs(each.weight * each.token_loss).sum()) for each in terms)
        assert sum(float(each.loss) for each in terms) == pytest.approx(logged[number], abs=1e-5 * size)
        paid += step.rewards.tolist()
    assert len(set(paid)) > 2, "rewards differ, and are not all 0"


AXES: dict[str, list[float]] = {"objective.beta": [0.0, 0.1], "learner.group_size": [2, 4]}


@contextmanager
def opened(path: Path) -> Iterator[Source]:
    """Open a trace recorded by our recorder."""
    yield open_source(path)


@pytest.fixture
def model(folders: dict[str, Path]) -> Path:
    return folders["llama"]


@pytest.fixture
def swept(model: Path, tmp_path: Path) -> tuple[Path, Queue]:
    """A sweep of four runs with two seeds."""
    folder = tmp_path / "sweep"
    return folder, write(folder, planned(small(model), AXES, (7, 8), 3))


def test_every_row_has_the_arguments_of_its_run_in_which_the_runs_differ(swept: tuple[Path, Queue]) -> None:
    folder, queue = swept
    ast.parse((folder / SCRIPT).read_text(encoding="utf-8"))
    assert (folder / RECORDER).exists() and f"--array=1-{len(queue.runs)}\n" in (folder / ARRAY).read_text()
    with (folder / TABLE).open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["run"] for row in rows] == [trace_of(run.file) for run in queue.runs]
    assert len({row["run"] for row in rows}) == len(rows) == 8
    names = {"run", "beta", "num_generations", "per_device_train_batch_size", "seed"}
    for row, run in zip(rows, queue.runs, strict=True):
        assert row.keys() == names
        for name in names - {"run", "per_device_train_batch_size"}:
            assert ast.literal_eval(row[name]) == config(run.settings)[name]
        completions = run.settings.language.prompts * run.settings.learner.group_size
        assert ast.literal_eval(row["per_device_train_batch_size"]) == completions


@pytest.mark.parametrize(
    ("path", "values"),
    [("model.adapter_rank", [4, 8]), ("task.form_weight", [0.0, 1.0]), ("objective.kl", ["k1", "k3"])],
)
def test_what_no_argument_of_trl_says_is_refused(path: str, values: list[object], model: Path, tmp_path: Path) -> None:
    settings = small(model).replace({"objective.beta": 0.1})
    with pytest.raises(SettingsError, match=path.replace(".", r"\.")):
        write(tmp_path / "sweep", planned(settings, {path: values}, (7,), 3))
    assert not (tmp_path / "sweep").exists()


def test_traces_come_back_as_the_series_of_their_runs(
    swept: tuple[Path, Queue], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, queue = swept
    with pytest.raises(RunFileError, match="has left a trace"):
        [*collected(folder, opened)]
    source = open_source(DATA / "grpo")
    for run in queue.runs[::3]:
        shutil.copytree(DATA / "grpo", folder / TRACES / trace_of(run.file))
    found = [*collected(folder, opened)]
    assert [result.settings for result in found] == [run.settings for run in queue.runs[::3]]
    for result in found:
        for position in range(1, len(source) + 1):
            for name, value in numbers(source, position).items():
                np.testing.assert_array_equal(result.measures[name][position - 1], value)
    table = folder / "results.csv"
    assert main(["import", "--sweep", str(folder), str(table)]) == 0
    said = capsys.readouterr().out
    assert all((run.title in said) is (run in queue.runs[::3]) for run in queue.runs)
    with table.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(found) * len(source)
    assert {float(row["objective.beta"]) for row in rows} == {r.settings.objective.beta for r in found}


def test_on_the_command_line_it_writes_the_folder_and_says_what_to_do(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "sweep"
    options = ["--over", "objective.beta=0,0.1", "--seeds", "1", "--updates", "2", "--out", str(folder)]
    assert main(["sweep", "--trl", str(model), *options]) == 0
    assert "trains 2 runs" in capsys.readouterr().out
    assert (folder / SCRIPT).exists()
