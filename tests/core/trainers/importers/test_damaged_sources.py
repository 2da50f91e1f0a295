"""Damaged sources cause a clear error message, or give the numbers of the intact parts; never another exception."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from grpo_core.errors import GrpoError, NotRecordedError
from grpo_core.trainers import recorded_series
from grpo_core.trainers.conversion import convert
from grpo_core.trainers.health import diagnose
from grpo_core.trainers.importers import open_source
from tests.core.trainers.sources import SOURCES, source_path
from tests.core.trainers.trace_files import DATA

KINDS = ("trace", "converted", *SOURCES)


def whole(kind: str, folder: Path) -> Path:
    """Return an intact source of that kind, to be damaged."""
    folder.mkdir()
    if kind == "trace":
        return Path(shutil.copytree(DATA / "two_processes", folder / kind))
    if kind == "converted":
        convert(open_source(DATA / "grpo"), folder / "run.grpo")
        return folder / "run.grpo"
    path = source_path(kind, folder)
    if path.is_relative_to(folder):
        return path
    return Path(shutil.copytree(path, folder / kind) if path.is_dir() else shutil.copy(path, folder / path.name))


def files_of(path: Path) -> list[Path]:
    """Return every file of a source except those of a tokenizer."""
    if path.is_file():
        return [path]
    return sorted(file for file in path.rglob("*") if file.is_file() and "tokenizer" not in file.parts)


def damaged(content: bytes, random: np.random.Generator) -> bytes:
    """Return ``content`` truncated, overwritten, shifted, doubled, or with bytes that are not text."""
    a, b = sorted(int(x) for x in random.integers(0, len(content) + 1, 2))
    some = random.integers(0, 256, int(random.integers(1, 64)), dtype=np.uint8).tobytes()
    return [
        lambda: content[:a],
        lambda: content[:a] + some + content[a + len(some) :],
        lambda: content[:a] + content[b:],
        lambda: content[:b] + content[a:],
        lambda: content[:a] + b"\xff\xfe\x00" + content[a:],
        lambda: content[:a] + b"9" * 400 + content[a:],
        lambda: content[:a].replace(b"1", b"-1e308") + content[a:].replace(b"0.", b"NaN"),
        lambda: content.replace(b"[", b"{", 3),
        lambda: content.replace(b'": ', b'": [[[', 5),
    ][int(random.integers(9))]()


def sentences(path: Path) -> Iterator[str]:
    """Read everything in a source, as the window and the commands do. Yields the error messages."""
    try:
        source = open_source(path)
    except GrpoError as error:
        yield str(error)
        return
    for position in range(1, min(len(source), 20) + 1):
        for read in (source.completions, source.step, source.reports, source.stamp):
            with suppress(NotRecordedError):
                try:
                    read(position)
                except GrpoError as error:
                    yield str(error)
        try:
            recorded_series.numbers(source, position)
        except GrpoError as error:
            yield str(error)
    if source.has_losses:
        for position in range(1, min(len(source), 20) + 1):
            try:
                source.losses(position)
            except GrpoError as error:
                yield str(error)
    yield from diagnose(source, range(1, min(len(source), 20) + 1)).unreadable
    source.refresh()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", KINDS)
def test_damage_ends_in_a_sentence(kind: str, seed: int, tmp_path: Path) -> None:
    assert_sentences(kind, seed, 3, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_much_damage_ends_in_sentences(kind: str, tmp_path: Path) -> None:
    assert_sentences(kind, 99, 150, tmp_path)


def assert_sentences(kind: str, seed: int, times: int, tmp_path: Path) -> None:
    """Damage the files of an intact source one by one, and read the rest."""
    random = np.random.default_rng([seed, KINDS.index(kind)])
    path = whole(kind, tmp_path / "whole")
    for _ in range(times):
        file = files_of(path)[int(random.integers(len(files_of(path))))]
        content = file.read_bytes()
        file.write_bytes(damaged(content, random))
        for sentence in sentences(path):
            assert sentence.strip() and len(sentence) < 2000
        file.write_bytes(content)
