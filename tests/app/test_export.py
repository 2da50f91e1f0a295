"""Pictures and tables on the command line: real files of the requested size, and an error message otherwise."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from functools import partialmethod
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication

from app.__main__ import DRAWING
from app.examples import example
from app.export.command import main
from app.start import drawing_command
from app.theme.tokens import DARK, LIGHT, Theme
from app.workspace.evolution import Evolution
from grpo_core import recompute, step_table
from grpo_core.commands.cli import main as core
from grpo_core.config import Settings
from grpo_core.evaluated_step import EvaluatedStep
from grpo_core.learners import origin
from grpo_core.runs.run_file import RunReader, RunWriter
from tests.core.lm_steps import lm_run
from tests.core.runs.conftest import permissions_count  # noqa: F401
from tests.core.trainers.sources import DATA
from tests.core.trainers.trace_files import DATA as TRACES

ROOT = Path(__file__).parents[2]
RECORDED = """
    timeline controls metrics pipeline policy-bars training-history token-inspector evolution step-detail explain
    completions
"""
"""Panels that show a recorded run by themselves."""
OTHERS = """
    score-your-own kl-over-beta comparison what-if queue breakpoints glossary references lesson diagnosis homework
"""
"""Panels that compute, or that contain text."""
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run π.grpo"
    assert core(["train", "--steps", "15", "--set", "objective.beta=0.1", "--out", str(path), "--title", "Mine"]) == 0
    return path


@pytest.fixture(autouse=True)
def _undressed(qapp: QApplication) -> Iterator[None]:
    before = qapp.palette(), qapp.font(), qapp.styleSheet()
    yield
    qapp.setPalette(before[0])
    qapp.setFont(before[1])
    qapp.setStyleSheet(before[2])


def export(*arguments: object) -> None:
    assert main([str(argument) for argument in arguments]) == 0


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Return the one error message with which the command ends."""
    capsys.readouterr()
    try:
        status: object = main([str(argument) for argument in arguments])
    except SystemExit as end:
        status = end.code
    output = capsys.readouterr()
    assert (status, output.out, output.err.count("\n")) == (2, "", 1), output
    return output.err


def texts(svg: Path) -> str:
    """Return all text in an SVG file, in order, with a space at each change of font."""
    return " ".join(" ".join("".join(each.itertext()) for each in ET.parse(svg).iter(f"{SVG}text")).split())


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
def test_a_png_has_the_size_and_the_colours_asked_for(run: Path, tmp_path: Path, theme: Theme) -> None:
    out = tmp_path / "policy.png"
    export(run, "--panel", "policy-bars", "--out", out, "--size", "900x400", "--theme", theme.name, "--step", 12)
    image = QImage(str(out))
    assert (image.width(), image.height()) == (900, 400)
    assert image.pixelColor(2, 2).name().upper() == theme.hex("ground")
    seen = {image.pixelColor(x, y).name().upper() for x in range(0, 900, 3) for y in range(0, 400, 3)}
    assert theme.hex("policy") in seen


def test_an_svg_holds_lines_and_words_and_a_caption(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "policy.svg"
    export(run, "--panel", "policy_bars", "--out", out, "--step", 12, "--size", "900x400")
    root = ET.parse(out).getroot()
    assert root.get("viewBox") == "0 0 900 400"
    said = texts(out)
    for part in ("action", "Mine", "update 12 of 15, pass 4 of 4", "KL weight β 0.1", "seed 7", "GRPO Lab"):
        assert part in said
    assert not list(root.iter(f"{SVG}image")), "a plot is drawn with lines, not with pixels"
    with RunReader.open(run) as reader:
        best = float(np.exp(reader.step(12).dist_logp[-1, 0]).max())  # type: ignore[index]
    assert f"{best:.3f}" in said


def test_a_pdf_is_one_page_with_its_title(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "history.PDF"
    export(run, "--panel", "Training history", "--out", out)
    data = out.read_bytes()
    assert data.startswith(b"%PDF") and data.rstrip().endswith(b"%%EOF")
    assert len(data) > 5000 and data.count(b"/Type /Page\n") == 1


def test_without_a_caption_the_panel_has_all_the_room(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "cards.svg"
    export(run, "--panel", "metrics", "--out", out, "--no-caption", "--size", "800x80")
    assert "seed" not in texts(out)
    assert "Mean reward" in texts(out)


def test_a_larger_scale_makes_everything_larger(run: Path, tmp_path: Path) -> None:
    sizes = []
    for scale in ("1", "200%"):
        out = tmp_path / f"cards {scale.rstrip('%')}.svg"
        export(run, "--panel", "metrics", "--out", out, "--scale", scale)
        sizes.append({float(each.get("font-size", 0)) for each in ET.parse(out).iter(f"{SVG}text")})
    assert {2 * size for size in sizes[0]} == sizes[1]


def test_the_table_of_an_update_is_that_of_the_core(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "step.csv"
    export(run, "--panel", "step-detail", "--out", out, "--step", 9)
    with out.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with RunReader.open(run) as reader:
        step = reader.step(9)
    assert len(rows) == len(step_table.rows(EvaluatedStep(step), 3))
    assert [float(row["A"]) for row in rows] == recompute.advantage(step).tolist()
    assert [float(row["r"]) for row in rows] == recompute.terms(step, 3).ratio[:, 0].tolist()


def test_every_chart_of_a_panel_has_a_table_of_its_own(run: Path, tmp_path: Path) -> None:
    export(run, "--panel", "training-history", "--out", tmp_path / "history.csv")
    files = sorted(tmp_path.iterdir())
    assert len(files) == 2 and all(file.name.startswith("history-") for file in files)
    with files[1].open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    with RunReader.open(run) as reader:
        column = rows[0].index("reward")
        assert [float(row[column]) for row in rows[1:]] == reader.series("reward_mean").tolist()
        assert [row[0] for row in rows[1:]] == [str(n) for n in range(1, 16)]


def test_all_panels_of_both_kinds_of_run(run: Path, tmp_path: Path) -> None:
    lm_run(tmp_path / "lm.grpo", 2, prompts=2, group_size=4)
    for path, absent in ((run, "evolution"), (tmp_path / "lm.grpo", "policy-bars")):
        folder = tmp_path / path.stem
        export(path, "--panel", "all", "--out", folder, "--format", "svg")
        written = {file.stem for file in folder.iterdir()}
        assert {*RECORDED.split()} - {absent} <= written and not written & {absent, *OTHERS.split()}
        assert all("seed 7" in texts(file) for file in folder.iterdir())


def test_a_sequence_of_updates_has_one_size(run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "frames"
    export(run, "--panel", "policy-bars", "--steps", "8:11", "--out", folder, "--scale", "0.8")
    files = sorted(folder.iterdir())
    assert [file.name for file in files] == [f"policy-bars-{n:04}.png" for n in (8, 9, 10, 11)]
    images = [QImage(str(file)) for file in files]
    assert len({(image.width(), image.height()) for image in images}) == 1
    assert all(one != other for one, other in pairwise(images))


def test_answers_are_read_to_the_end_before_a_picture_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    take, pictures = Evolution.take, []
    for seconds in (60.0, 0.0):  # all updates at once, and one with each frame
        monkeypatch.setattr(Evolution, "take", partialmethod(take, budget=seconds))
        picture = tmp_path / f"{seconds}.png"
        export(example("arithmetic"), "--panel", "evolution", "--out", picture)
        pictures.append(picture.read_bytes())
    assert pictures[0] == pictures[1]


def test_a_completion_is_selected_and_its_number_explained(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "why.svg"
    export(run, "--panel", "explain", "--explain", "ratio", "--row", 3, "--out", out, "--step", 12)
    assert "sample 3" in texts(out) and "agrees" in texts(out)


def test_the_starting_policy_of_a_run_without_updates(tmp_path: Path) -> None:
    with RunWriter.create(tmp_path / "new.grpo", Settings(), origin=origin(Settings())):
        pass
    export(tmp_path / "new.grpo", "--panel", "policy-bars", "--out", tmp_path / "start.svg")
    assert "before the first update" in texts(tmp_path / "start.svg")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--panel", "polcy-bars", "--out", "a.png"], "Unknown panel “polcy-bars”; did you mean policy-bars?"),
        (["--panel", "xyz", "--out", "a.png"], "Choose one of timeline, controls, metrics"),
        (["--panel", "metrics", "--out", "a.png", "--step", "16"], "has no update 16; it has updates 1 to 15."),
        (["--panel", "metrics", "--out", "a.png", "--step", "x"], "--step cannot be “x”"),
        (["--panel", "metrics", "--out", "a.jpg"], "end the name in .png, .svg, .pdf or, for a table, .csv"),
        (["--panel", "metrics", "--out", "no/a.png"], "There is no folder no"),
        (["--panel", "metrics", "--out", "a.csv"], "The panel metrics has no table"),
        (["--panel", "all", "--out", "a.png"], "a.png cannot hold several files"),
        (["--panel", "metrics", "--out", "a.svg", "--size", "big"], "such as 1600x900"),
        (["--panel", "metrics", "--out", "a.svg", "--size", "99999x2"], "from 24 to 8192"),
        (["--panel", "metrics", "--out", "a.svg", "--size", "400x100", "--scale", "2.5"], "add --no-caption"),
        (["--panel", "metrics", "--out", "a.svg", "--scale", "9"], "give a number from 0.8 to 2.5"),
        (["--panel", "metrics", "--out", "a.svg", "--scale", "nan"], "give a number from 0.8 to 2.5"),
        (["--panel", "metrics", "--out", "a.svg", "--theme", "pink"], "for usage, run:"),
        (["--panel", "explain", "--out", "a.svg", "--explain", "advantag"], "did you mean advantage?"),
        (["--panel", "explain", "--out", "a.svg", "--row", "9"], "it has completions 1 to 8"),
        (["--out", "a.svg"], "add --panel"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    run: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert sentence in refused(capsys, run, *arguments)
    assert list(tmp_path.iterdir()) == []


def test_what_exists_is_replaced_only_when_that_is_meant(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "a.png"
    out.write_bytes(b"mine")
    assert "add --force to replace it" in refused(capsys, run, "--panel", "metrics", "--out", out)
    assert out.read_bytes() == b"mine"
    export(run, "--panel", "metrics", "--out", out, "--force")
    assert not QImage(str(out)).isNull()


def test_a_wrong_file_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text.grpo").write_text("no run")
    for name in ("text.grpo", "absent.grpo"):
        assert name in refused(capsys, tmp_path / name, "--panel", "metrics", "--out", tmp_path / "a.png")


@pytest.mark.usefixtures("permissions_count")
def test_a_read_only_folder_is_one_sentence(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tmp_path.chmod(0o555)
    said = refused(capsys, run, "--panel", "metrics", "--out", tmp_path / "a.png")
    assert "cannot be written: the program is not allowed to use the folder." in said
    assert list(tmp_path.iterdir()) == []


def test_the_command_works_without_a_display(run: Path, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "QT_QPA_PLATFORM")}
    out = tmp_path / "a.svg"
    command = [sys.executable, "-m", "app", "export", str(run), "--panel", "token-inspector", "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=200, check=False)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", f"{out}\n")
    assert "Token 1 of completion 1" in texts(out)


def test_what_needs_no_window_is_exported_as_well(run: Path, tmp_path: Path) -> None:
    export(run, "--out", tmp_path / "step.py", "--step", 3)
    export(run, "--out", tmp_path / "tables")
    assert (tmp_path / "step.py").read_text("utf-8").startswith("# Update 3 of “Mine”")
    assert (tmp_path / "tables" / "samples.csv").exists()


DRAWN = {
    "export": ["--panel", "completions", "--out", "completions.png"],
    "film": ["--speed", "4", "--out", "run.webp"],
    "page": ["--out", "run.html"],
}
"""Command that draws a run file -> its other arguments."""


def test_the_commands_that_draw_a_run_file_are_those_of_the_table() -> None:
    taking = set()
    for name in DRAWING:
        if (command := drawing_command(name)) is not None:
            parser = sys.modules[command.__module__].command_parser()
            taking |= {name} if any(one.dest == "run" and not one.option_strings for one in parser._actions) else set()
    assert taking == DRAWN.keys()


@pytest.mark.parametrize("command", DRAWN)
@pytest.mark.parametrize("source", [TRACES / "grpo", DATA / "trl"], ids=["tokens", "texts"])
def test_an_imported_run_is_drawn_or_refused_for_what_it_lacks(
    source: Path, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert core(["import", str(source), "run.grpo"]) == 0
    draw = drawing_command(command)
    assert draw is not None
    code = draw(["run.grpo", *DRAWN[command]])
    if source == DATA / "trl" and command != "export":  # a table of completions needs no tokens
        assert code == 2 and "no tokens and no log-probabilities" in capsys.readouterr().err
    else:
        assert code == 0 and Path(DRAWN[command][-1]).stat().st_size > 1000
