"""A malicious run file opens within seconds or is refused with one error message."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from grpo_core.config import Settings
from grpo_core.errors import GrpoError
from grpo_core.learners import learner
from grpo_core.runs import library
from grpo_core.runs.limits import LONGEST_TITLE
from grpo_core.runs.run_file import RunReader
from tests.core.runs.conftest import written
from tests.core.runs.hostile import SCHEMAS, changed, circles, statements
from tests.core.runs.hostile_values import LIES
from tests.core.runs.ways import WAYS, listed

SECONDS, WAITING = 5.0, 60.0
"""Limits for opening a file in any way: seconds of processor time, and seconds of waiting, since a busy machine is
not a hang.
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A run of six updates."""
    path = tmp_path_factory.mktemp("whole") / "run.grpo"
    return written(path, islice(learner(Settings()), 6), origin=None, title="Good").read_bytes()


def check(path: Path, what: str) -> None:
    """Assert that every way of opening the file ends within seconds, with a result or one error message."""
    for way in WAYS:
        begun, waited = time.process_time(), time.monotonic()
        try:
            way(path)
        except GrpoError as error:
            message = str(error)
            assert message.rstrip("”").endswith((".", "…")), message
            assert len(message) < 1000, what
            assert "\n" not in message
        except Exception as error:
            raise AssertionError(f"{what}, {way.__name__}: a raw error") from error
        assert time.process_time() - begun < SECONDS, f"{what}, {way.__name__}"
        assert time.monotonic() - waited < WAITING, f"{what}, {way.__name__}"


LONG = [pytest.mark.long, pytest.mark.timeout(1800)]
SHARES = pytest.mark.parametrize("every", [pytest.param(20, id="short"), pytest.param(1, id="long", marks=LONG)])
CHANGES = {**SCHEMAS, **LIES}


@SHARES
def test_a_run_file_made_to_do_harm_ends_in_a_sentence(tmp_path: Path, whole: bytes, every: int) -> None:
    for number, (what, change) in enumerate(CHANGES.items()):
        if number % every == 0 or what in NAMED:
            path = tmp_path / str(number) / "run.grpo"
            path.parent.mkdir()
            path.write_bytes(whole)
            changed(path, change)
            check(path, what)
            shutil.rmtree(path.parent)


NAMED = (
    "tail is a view of i",
    "meta is a view of i",
    "step is a view of i",
    "a trigger after UPDATE on meta",
    "series is virtual",
    "tail of a newer version is a view",
    "it is its own parent after update 3",
    "another series, and its last update is 1000000000",
    "the shape [0, 4611686018427387904]",
    "measurement.gradient_norm of shape [3]",
    "undecodable settings",
    "dist_logp of shape [1, 1, 1, 1, 1, 1, 1, 1]",
)
"""Cases that once hung the program. The quick tests include them as well."""


def test_what_is_named_is_among_the_changes() -> None:
    assert set(NAMED) <= set(CHANGES)


@SHARES
def test_pages_that_lead_in_circles_end_in_a_sentence(tmp_path: Path, whole: bytes, every: int) -> None:
    for number, (what, content) in enumerate(circles(whole)):
        if number % every == 0:
            path = tmp_path / str(number) / "run.grpo"
            path.parent.mkdir()
            path.write_bytes(content)
            check(path, what)
            shutil.rmtree(path.parent)


def test_what_a_file_repeats_in_a_sentence_is_cut(tmp_path: Path, whole: bytes) -> None:
    path = tmp_path / "run.grpo"
    path.write_bytes(whole)
    changed(path, CHANGES["undecodable settings"])
    with RunReader.open(path) as reader, pytest.raises(GrpoError, match="damaged or was cut short") as refused:
        reader.settings_changes()
    assert "{" not in str(refused.value)


def test_a_title_is_one_line_of_a_length_that_can_be_shown(tmp_path: Path, whole: bytes) -> None:
    path = tmp_path / "run.grpo"
    path.write_bytes(whole)
    changed(path, statements("UPDATE meta SET value = 'a' || char(10) || hex(zeroblob(5000)) WHERE key = 'title'"))
    with RunReader.open(path) as reader:
        assert reader.meta.title.startswith("a 00")
        assert reader.meta.title.endswith("…")
        assert len(reader.meta.title) == LONGEST_TITLE


@pytest.mark.skipif(os.name != "posix", reason="pipes that are files")
@pytest.mark.parametrize("beside", ["", "-wal", "-journal"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_pipe_in_place_of_a_file_is_not_waited_for(
    tmp_path: Path, whole: bytes, way: Callable[[Path], None], beside: str
) -> None:
    path = tmp_path / "run.grpo"
    if beside:
        path.write_bytes(whole)
    os.mkfifo(path.with_name(path.name + beside))
    if way is listed:
        assert library.entries(tmp_path) == [] or "pipe" in str(library.entries(tmp_path)[0].error)
        return
    with pytest.raises(GrpoError, match="pipe"):
        way(path)
