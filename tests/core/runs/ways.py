"""Every way in which the program opens a run file, from the first inspection to continued writing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

from app.workspace.run_handle import RunHandle
from grpo_core.config import Settings
from grpo_core.errors import GrpoError
from grpo_core.learners import learner
from grpo_core.metrics import METRICS, metrics
from grpo_core.runs import library
from grpo_core.runs.run_file import RunReader, RunWriter, copy_run
from grpo_core.runs.session import Manifest, save_session
from tests.sessions import open_session


def read(path: Path) -> None:
    with RunReader.open(path) as reader, closing(library.Lineage(reader, path.parent)) as lineage:
        series = [partial(reader.series, name) for name in METRICS]
        looks: list[Callable[[], object]] = [
            lambda: reader.origin,
            reader.settings_changes,
            lambda: reader.thinned,
            lineage.thinned,
            *series,
        ]
        for look in looks:
            with suppress(GrpoError):
                look()
        for number in (1, 2, 3, 4, 6, reader.last, reader.last + 1):
            with suppress(GrpoError):
                metrics(lineage.step(number))
            with suppress(GrpoError):
                lineage.kept(number)


def shown(path: Path) -> None:
    handle = RunHandle.open(path)
    try:
        handle.step(handle.head)
    finally:
        handle.close_file()


def written(path: Path) -> None:
    with RunWriter.open(path) as writer, RunReader.open(path) as reader:
        if writer.committed:
            writer.append(next(learner(writer.meta.settings, resume=reader.step(writer.committed))))


def copied(path: Path) -> None:
    copy_run(path, path.with_name("copy.grpo"))


def listed(path: Path) -> None:
    assert path in [entry.path for entry in library.entries(path.parent)]


def handed_out(path: Path) -> None:
    session = path.with_name("x.grposession")
    save_session(session, Manifest(settings=Settings()), [path])
    open_session(session, path.with_name("opened"))


WAYS: tuple[Callable[[Path], None], ...] = (read, shown, listed, copied, handed_out, written)
