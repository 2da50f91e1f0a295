"""A film of a run as a file: read back by Qt's own reader."""

from __future__ import annotations

import gc
import os
import stat
from contextlib import suppress
from dataclasses import replace
from functools import partialmethod
from pathlib import Path

import pytest
from PySide6.QtCore import QRect
from PySide6.QtGui import QColor, QImage, QImageReader, QPainter

from app.examples import example
from app.export.film_command import main
from app.export.film_file import AT_END, FilmChoice, export_film, shots
from app.export.stage import SIZE
from app.export.webp import AnimatedWebp, chunks
from app.settings.files import write
from app.workspace.cursor import Cursor, Stage
from app.workspace.evolution import Evolution
from app.workspace.film import update_film
from grpo_core.config import Settings
from grpo_core.errors import GrpoError
from tests.app.runs import a_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return a_run(tmp_path_factory.mktemp("runs") / "run.grpo", 6)


def picture(place: int, width: int = 101, height: int = 51) -> QImage:
    image = QImage(width, height, QImage.Format.Format_RGB32)
    image.fill(QColor("white"))
    painter = QPainter(image)
    painter.fillRect(QRect(place, 11, 9, 9), QColor(30, 120, 200))
    painter.end()
    return image


def read(path: Path) -> list[tuple[QImage, int]]:
    """Return (picture, milliseconds) of every frame, as Qt reads them."""
    reader = QImageReader(str(path))
    frames = []
    while reader.canRead():
        image = reader.read().convertToFormat(QImage.Format.Format_RGB32)
        frames.append((image, reader.nextImageDelay()))
    return frames


def test_what_is_read_back_is_every_picture_for_its_time(tmp_path: Path) -> None:
    film = AnimatedWebp()
    pictures = [picture(place) for place in (3, 10, 17, 90)]
    for number, image in enumerate(pictures):
        film.add(image, 40 + number)
    (tmp_path / "film.webp").write_bytes(film.to_bytes())
    assert read(tmp_path / "film.webp") == [(image, 40 + number) for number, image in enumerate(pictures)]


def test_a_picture_that_stays_makes_its_frame_stand_longer_and_of_others_only_what_changes_is_kept(
    tmp_path: Path,
) -> None:
    film = AnimatedWebp()
    for place in (3, 3, 60):
        film.add(picture(place, 640, 400), 50)
    (tmp_path / "film.webp").write_bytes(film.to_bytes())
    assert [delay for _, delay in read(tmp_path / "film.webp")] == [100, 50]
    frames = [content for name, content in chunks(film.to_bytes()) if name == b"ANMF"]
    assert [int.from_bytes(frame[6:9], "little") + 1 for frame in frames] == [640, 67]
    assert QImageReader(str(tmp_path / "film.webp")).size() == picture(0, 640, 400).size()


def test_pictures_of_two_sizes_too_large_ones_and_none_at_all_are_refused() -> None:
    film = AnimatedWebp()
    with pytest.raises(GrpoError, match="at least one picture"):
        film.to_bytes()
    with pytest.raises(GrpoError, match="too large"):
        film.add(QImage(16_384, 1, QImage.Format.Format_RGB32), 50)
    film.add(picture(1), 50)
    with pytest.raises(GrpoError, match="same size"):
        film.add(picture(1, 99), 50)


def test_a_film_plays_every_stage_in_order_and_stands_at_its_end() -> None:
    made = shots([4], lambda step: 2, None, 20.0)
    places = [(cursor.stage, cursor.passed, cursor.progress) for cursor, _ in made[:-1]]
    assert places == sorted(places)
    assert {stage for stage, _, _ in places} == set(Stage)
    assert made[-1] == (Cursor(step=4), 50 + round(1000 * AT_END))
    assert sum(milliseconds for _, milliseconds in made[:-1]) == pytest.approx(
        1000 * update_film(4, 2, 60.0).seconds, abs=1
    )


@pytest.mark.parametrize(("speed", "each"), [(1.0, 1000), (2.0, 500), (10.0, 100)])
def test_each_update_takes_its_time(speed: float, each: int) -> None:
    made = shots([1, 2, 3], lambda step: 1, speed, 20.0)
    for step in (1, 2):
        assert sum(milliseconds for cursor, milliseconds in made if cursor.step == step) == each
    with pytest.raises(GrpoError, match="too long"):
        shots(list(range(1, 10_100)), lambda step: 1, 30.0, 20.0)


def test_an_update_becomes_an_animated_webp_that_is_not_replaced_unasked(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], qapp: object
) -> None:
    out = tmp_path / "update.webp"
    command = [str(run), "--update", "2", "--out", str(out), "--rate", "5", "--size", "400x300"]
    assert main(command) == 0
    said = capsys.readouterr().out.splitlines()
    frames = read(out)
    planned = shots([2], lambda step: Settings().learner.mu, None, 5.0)
    assert said[-1] == str(out)
    assert said[0] == f"Picture 1 of {len(planned)}."
    assert 2 < len(frames) <= len(planned)
    assert sum(delay for _, delay in frames) == sum(milliseconds for _, milliseconds in planned)
    assert {(image.width(), image.height()) for image, _ in frames} == {(400, 300)}
    assert main(command) == 2
    assert "already exists" in capsys.readouterr().err
    assert main([*command, "--force", "--no-caption"]) == 0


@pytest.mark.skipif(os.name == "nt", reason="Windows has no modes")
@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o002, 0o664), (0o077, 0o600)])
def test_an_exported_file_is_readable_by_whoever_the_users_umask_allows(tmp_path: Path, umask: int, mode: int) -> None:
    """The group that owns the folder used to be unable to read a film in it."""
    out = tmp_path / "film.webp"
    before = os.umask(umask)
    try:
        write(out, b"film")
    finally:
        os.umask(before)
    assert out.read_bytes() == b"film"
    assert stat.S_IMODE(out.stat().st_mode) == mode


def test_several_updates_become_numbered_pictures_in_a_folder_of_their_own(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], qapp: object
) -> None:
    out = tmp_path / "pictures"
    command = [str(run), "--updates", "1:3", "--out", str(out), "--speed", "10", "--rate", "10", "--theme", "dark"]
    assert main(command) == 0
    names = [f"frame-{number:04}.png" for number in range(1, 3 + round(10 * AT_END) + 1)]
    assert sorted(path.name for path in out.iterdir()) == names
    assert QImage(str(out / names[0])) != QImage(str(out / names[2]))
    assert QImage(str(out / names[2])) == QImage(str(out / names[-1]))
    assert main(command) == 2
    assert main([*command, "--force", "--updates", "1:2"]) == 0
    assert len(list(out.iterdir())) == len(names) - 1
    (out / "mine.txt").write_text("keep")
    assert main([*command, "--force"]) == 2
    assert "holds other files, such as mine.txt" in capsys.readouterr().err
    assert (out / "mine.txt").read_text() == "keep"


def test_an_older_film_stays_until_the_new_one_is_whole(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], qapp: object
) -> None:
    """All pictures of the old film used to be deleted before the first new one was drawn."""
    out = tmp_path / "pictures"
    choice = FilmChoice(steps=range(1, 4), speed=10.0, rate=10.0)
    list(export_film(run, out, choice))
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    with suppress(InterruptedError):
        for _ in export_film(run, out, replace(choice, theme="dark"), force=True):
            raise InterruptedError
    gc.collect()  # the abandoned film
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == [], "no picture is left behind"
    list(export_film(run, out, replace(choice, theme="dark"), force=True))
    after = {path.name: path.read_bytes() for path in out.iterdir()}
    assert after.keys() == before.keys()
    assert all(after[name] != before[name] for name in before)


def test_an_update_of_a_language_model_shows_its_completions(tmp_path: Path, qapp: object) -> None:
    out = tmp_path / "language.webp"
    assert main([str(example()), "--update", "1", "--rate", "3", "--no-caption", "--out", str(out)]) == 0
    frames = read(out)
    assert len(frames) > 1
    assert {(image.width(), image.height()) for image, _ in frames} == {SIZE}


def test_answers_are_read_to_the_end_before_a_film_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qapp: object
) -> None:
    take, films = Evolution.take, []
    command = [str(example("arithmetic")), "--panel", "evolution", "--updates", "3:5", "--speed", "10", "--rate", "10"]
    for seconds in (60.0, 0.0):  # all updates at once, and one with each frame
        monkeypatch.setattr(Evolution, "take", partialmethod(take, budget=seconds))
        film = tmp_path / f"{seconds}.webp"
        assert main([*command, "--out", str(film)]) == 0
        films.append(film.read_bytes())
    assert films[0] == films[1]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--out", "a.webp", "--update", "9"), "has no update 9"),
        (("--out", "a.mp4"), "ends in .webp, or a folder"),
        (("--out", "a.webp", "--speed", "fast"), "--speed cannot be “fast”"),
        (("--out", "a.webp", "--rate", "0"), "--rate cannot be “0”"),
        (("--out", "a.webp", "--panel", "policy"), "did you mean policy-"),
        (("--out", "nowhere/a.webp"), "There is no folder"),
    ],
)
def test_what_cannot_be_filmed_is_refused_in_a_sentence(
    arguments: tuple[str, ...],
    sentence: str,
    run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    qapp: object,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([str(run), *arguments]) == 2
    assert sentence in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
