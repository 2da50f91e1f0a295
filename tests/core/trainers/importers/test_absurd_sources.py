"""Sources that are pipes, expand without limit, or are truncated while being read, counts that no trainer writes, and
damage: a clear error message, or the numbers of the intact parts; never another exception.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grpo_core.errors import GrpoError, NotRecordedError, RunFileError
from grpo_core.trainers import recorded_series
from grpo_core.trainers.conversion import convert
from grpo_core.trainers.health import diagnose
from grpo_core.trainers.hf.folder import generation_settings
from grpo_core.trainers.importers import open_source, parquet
from grpo_core.trainers.importers.parquet import Columns
from tests.core.trainers.sources import SOURCES, source_path
from tests.core.trainers.trace_files import DATA, copied
from tests.fuzz.hostile_sources import attempts, equal_rows, instead, one_file, row, trace_with

pytestmark = pytest.mark.timeout(30)
PIPES = pytest.mark.skipif(sys.platform == "win32", reason="no pipes in folders")


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        *(("num_processes", value, "num_processes = ") for value in (10**9, -5, "many", float("nan"), 10**400)),
        *((name, [1] * 1_000_000, f"{name}: 1000000") for name in ("eos_ids", "reward_names", "reward_weights")),
    ],
)
def test_settings_that_nobody_has_are_refused(name: str, value: Any, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(RunFileError, match=f"a trainer setting cannot be used: {sentence}"):
        open_source(trace_with(tmp_path, "trace", name, value))


@pytest.mark.parametrize("passes", [2**52, float("nan"), True, "two"])
def test_lines_of_passes_that_no_step_has_are_left_out(tmp_path: Path, passes: Any) -> None:
    assert len(open_source(trace_with(tmp_path, "index", "passes", passes))) == 0


@pytest.mark.parametrize("dropped", ["many", float("nan"), 10**400, [], {}, None, -1])
def test_a_count_of_dropped_steps_that_is_none_says_nothing(tmp_path: Path, dropped: Any) -> None:
    source = open_source(trace_with(tmp_path, "index", "dropped", dropped))
    assert len(source) == 2 and not any("dropped" in note for note in source.notes)


def test_an_attempt_is_numbered_with_plain_digits(tmp_path: Path) -> None:
    assert len(open_source(attempts(tmp_path, "attempt²", "attempt" + "9" * 100))) == 2


@PIPES
@pytest.mark.parametrize("what", ["pipe", "/dev/zero"])
@pytest.mark.parametrize("file", ["trace.json", "rank0/attempt0/step_00000002.parquet", "rank0/attempt0/index.jsonl"])
def test_what_is_no_ordinary_file_is_not_waited_for(tmp_path: Path, file: str, what: str) -> None:
    folder = copied("grpo", tmp_path)
    instead(folder / file, what)
    try:
        source = open_source(folder if file != "trace.json" else folder / file)
    except RunFileError:
        assert file == "trace.json"
        return
    if len(source):
        with pytest.raises(RunFileError, match="not a regular file"):
            source.completions(2)


@PIPES
@pytest.mark.parametrize("what", ["pipe", "/dev/zero"])
def test_generation_settings_that_are_no_file_are_none(tmp_path: Path, what: str) -> None:
    instead(tmp_path / "generation_config.json", what)
    assert generation_settings(tmp_path) == {}


def test_a_million_generation_settings_are_none(tmp_path: Path) -> None:
    content = json.dumps({"eos_token_id": [1] * 1_000_000}).encode()
    one_file(tmp_path, "generation_config.json", content)
    assert generation_settings(tmp_path) == {}


def test_a_few_bytes_that_stand_for_millions_of_rows_are_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "completions_00001.parquet"
    equal_rows(path, 2_000_000)
    assert path.stat().st_size < 1_000_000
    with pytest.raises(RunFileError, match="claims to contain 2,000,000 rows; at most 200,000 can be read"):
        open_source(path)


def test_a_few_bytes_that_stand_for_one_long_text_again_and_again_are_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "LARGEST", 10_000_000)
    path = tmp_path / "completions_00001.parquet"
    equal_rows(path, 2_000, "x" * 10_000)
    with pytest.raises(RunFileError, match="more than 10,000,000 bytes, the limit for one file"):
        open_source(path)


@pytest.mark.parametrize("in_memory", [1 << 26, 0])
def test_a_file_that_is_cut_while_it_is_read_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_memory: int
) -> None:
    monkeypatch.setattr(parquet, "IN_MEMORY", in_memory)
    path = tmp_path / "cut.parquet"
    pq.write_table(pa.table({"x": [os.urandom(4500) for _ in range(2_000)]}), path)
    columns = Columns(path)
    os.truncate(path, 4096)
    if in_memory:  # it was read completely
        assert len(columns.values("x")) == 2_000
        return
    with pytest.raises(RunFileError, match=r"cut\.parquet cannot be read as Parquet"):
        columns.values("x")


def test_of_lines_that_are_no_json_some_are_named_and_the_others_counted(tmp_path: Path) -> None:
    (tmp_path / "1.jsonl").write_bytes(row() + b"\n" + b"x\n" * 25)
    source = open_source(tmp_path)
    assert len(source.completions(1).prompts) == 1
    assert sum("is not JSON and is left out" in note for note in source.notes) == 10
    assert "15 more lines of 1.jsonl are not JSON and are left out." in source.notes


def test_a_file_of_lines_that_are_no_json_is_not_read_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "1.jsonl").write_bytes(row() + b"\n" + b"x\n" * 3_000_000)
    source = open_source(tmp_path)
    source.completions(1)
    assert "More than 100,000 lines of 1.jsonl are not JSON; the rest is left out." in source.notes


def test_text_that_is_no_utf_8_is_refused_in_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "completions.parquet"
    text = pa.array([b"6+3=", b"\xb8+5="], pa.binary()).cast(pa.string(), safe=False)
    pq.write_table(pa.table({"prompt": text}), file)
    with pytest.raises(RunFileError, match=r"completions\.parquet"):
        Columns(file).values("prompt")


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
@pytest.mark.timeout(240)
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
