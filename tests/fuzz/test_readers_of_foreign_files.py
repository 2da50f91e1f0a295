"""Every importer, and the inspection of a model's folder, on randomly damaged files: a result or a message."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from grpo_core.errors import GrpoError
from grpo_core.foreign.answers import READ
from grpo_core.trainers.conversion import convert
from grpo_core.trainers.hf.folder import ignored_sentence, look, vocabulary
from grpo_core.trainers.importers import IMPORTERS, importer_for, open_source
from tests.core.trainers.sources import AGENT, LOG, source_path
from tests.core.trainers.sources import SOURCES as SOUND
from tests.core.trainers.trace_files import DATA, copied
from tests.fuzz.damage import damaged, odd_json
from tests.fuzz.hostile_models import FOLDERS, adapter, sound
from tests.fuzz.hostile_sources import SOURCES, made

pytestmark = pytest.mark.long
SECONDS = 5_000
"""Time limit for one example, in milliseconds."""
bounded = settings(
    max_examples=150, deadline=SECONDS, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@cache
def converted() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        convert(open_source(DATA / "grpo"), Path(folder, "run.grpo"))
        return Path(folder, "run.grpo").read_bytes()


LOGS = {f"log: {path.name}": path for path in sorted(LOG.parent.iterdir()) if path.suffix != ".parquet"}
"""Logs by format. Some damaged Parquet files make pyarrow end the process, which is why a process reads them."""


@contextmanager
def whole(name: str) -> Iterator[Path]:
    """Yield an intact source of a format, to be damaged."""
    with tempfile.TemporaryDirectory() as folder:
        if name == "trace":
            yield copied("grpo", Path(folder))
        elif name == "converted":
            Path(folder, "run.grpo").write_bytes(converted())
            yield Path(folder, "run.grpo")
        else:
            path = LOGS.get(name) or source_path(name, Path(folder))
            copy = Path(folder, "copy", path.name)
            copy.parent.mkdir()
            yield Path(shutil.copytree(path, copy) if path.is_dir() else shutil.copyfile(path, copy))


def told(read: Callable[[], object]) -> None:
    """Assert that reading gives a result or raises one of our errors."""
    with suppress(GrpoError):
        read()


def read(path: Path) -> None:
    """Read everything that is requested from a source."""
    source = open_source(path)
    for position in range(1, min(len(source), 3) + 1):
        for what in ("step", "completions", "measured", "reports"):
            told(partial(READ[what][1], source, position))
        told(partial(READ["stamps"][1], source, position, position))
    told(source.refresh)


@given(data=st.data())
@bounded
def test_an_agents_episode_of_odd_values_is_read_or_refused(data: DataObject) -> None:
    lines = AGENT.read_text("utf-8").splitlines()
    odd = data.draw(odd_json(json.loads(data.draw(st.sampled_from(lines)))))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, AGENT.name)
        path.write_text(f"{lines[0]}\n{odd}\n", "utf-8")
        read(path)


def test_every_importer_is_fuzzed() -> None:
    assert set(IMPORTERS) == {"trace", "converted", *SOUND, "log"}
    assert {name: importer_for(path) for name, path in LOGS.items()} == dict.fromkeys(LOGS, "log")


@pytest.mark.parametrize("name", ["trace", "converted", *SOUND, *LOGS])
@given(data=st.data())
@bounded
def test_an_importer_reads_or_says_a_told(name: str, data: DataObject) -> None:
    with whole(name) as path:
        files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
        file = data.draw(st.sampled_from(files))
        file.write_bytes(data.draw(damaged(file.read_bytes())))
        told(partial(read, path))


SEEDS = [name for name in SOURCES if "unfolds" not in name and "equal" not in name and "100 MB" not in name]


@pytest.mark.parametrize("name", SEEDS)
def test_a_seed_is_read_or_said_here_too(name: str, tmp_path: Path) -> None:
    told(partial(read, made(name, tmp_path / "seed")))


def look_at(path: Path) -> None:
    """Inspect everything that is requested of a model."""
    files = look(path)
    vocabulary(files)
    assert files.description.endswith(".")
    ignored_sentence(files.whole)


@example(None)
@given(data=st.data() | st.none())
@bounded
def test_a_model_is_looked_at_or_refused(data: DataObject | None) -> None:
    with tempfile.TemporaryDirectory() as name:
        if data is None:
            look_at(sound(Path(name)))
            return
        home = data.draw(st.sampled_from([sound, adapter]))(Path(name))
        file = data.draw(st.sampled_from(sorted(home.iterdir())))
        file.write_bytes(data.draw(damaged(file.read_bytes())))
        told(partial(look_at, home))


@pytest.mark.parametrize("name", FOLDERS)
def test_a_seed_of_a_model_is_looked_at_or_refused_here_too(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "seed"
    if name.startswith("gguf"):
        folder.mkdir()
    told(partial(look_at, FOLDERS[name](folder)))
