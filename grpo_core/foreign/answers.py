"""Main function of the process that reads untrusted files: it opens one source and answers requests about it.

The caller does not trust anything that this process sends: replies are JSON and arrays, and a reply that is too large
is rejected.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from grpo_core import parts
from grpo_core.child.answering import Answer, Poll, answer
from grpo_core.child.start import watch_parent
from grpo_core.config import Settings
from grpo_core.errors import GrpoError, RunFileError, shortened
from grpo_core.foreign import formats, walls
from grpo_core.foreign.formats import refreshed
from grpo_core.foreign.probes import probe
from grpo_core.foreign.recording import Completions, Report, Source
from grpo_core.foreign.replies import yielded_by
from grpo_core.lm.patterns import matcher
from grpo_core.packing import Tree, packed, unpacked
from grpo_core.record import Step
from grpo_core.runs.reader import RunReader
from grpo_core.text import tr

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

PROCESSOR_SECONDS = 600
"""Processor time in seconds allowed between two polls of a request, or in total without polls.

Callers usually wait less.
"""
LARGEST_ANSWER = 256 << 20
"""Maximum size of a reply's arrays in bytes."""
MOST_NOTES, LONGEST_SENTENCE = 1_000, 2_000
LONGEST_TEXT = 96 << 20
"""Maximum number of characters in a reply's strings."""


class Facts(TypedDict):
    """Facts about a source, without its updates."""

    path: str
    title: str
    settings: Settings
    partial: bool
    siblings: tuple[str, ...]
    notes: tuple[str, ...]
    labels: np.ndarray
    processes: int
    has_losses: bool
    why_no_losses: str


class Sources:
    """The states of one source about which requests can be made, by a number that the caller assigns.

    A state is created when the source is opened and on each check for new data. The last two are kept.
    """

    def __init__(self) -> None:
        self._sources: dict[int, Source] = {}

    def known(self, path: str, *, poll: Poll) -> Iterator[bool]:
        """Yield whether the format of the file or folder is known or its name is typical of another trainer."""
        yield formats.knows(Path(path))

    def open(self, number: int, path: str, index: str | None, columns: str, *, poll: Poll) -> Iterator[Facts]:
        """Open a source and yield facts about it, without its updates."""
        folder = None if index is None else Path(index)
        self._sources[number] = formats.open_source(Path(path), index=folder, columns=columns)
        yield facts_of(self._sources[number])

    def refresh(self, number: int, stamp: int | None, *, poll: Poll) -> Iterator[tuple[int, Facts | None, bool]]:
        """Run :func:`grpo_core.foreign.formats.refreshed`.

        The source with the new data is stored under the next number.
        """
        now, fresh, goes_on = refreshed(self._sources[number], stamp)
        if fresh is not None:
            self._sources = {number: self._sources[number], number + 1: fresh}
        yield now, None if fresh is None else facts_of(fresh), goes_on

    def table(self) -> dict[str, Answer]:
        def of_source(kind: Any, read: Callable[..., object]) -> Answer:
            def answered(number: int, *arguments: object, poll: Poll) -> Iterator[object]:
                yield read(self._sources[number], *arguments)

            answered.__annotations__["return"] = Iterator[kind]
            return answered

        return {
            "known": self.known,
            "open": self.open,
            "refresh": self.refresh,
            **{what: of_source(*read) for what, read in READ.items()},
        }


def enclosed(path: str, scratch: str | None, space: int, *, poll: Poll) -> Iterator[tuple[bool, bool]]:
    """Restrict this process to reading the program and ``path`` and to writing files of ``space`` bytes to its own
    folder.

    Yields whether files and system calls are restricted. All other threads of this process, and the libraries that
    start some when they are imported, such as pyarrow, come afterwards and are therefore restricted too.

    Raises:
        RunFileError: there is another thread already.
    """
    if scratch is not None:
        tempfile.tempdir = scratch
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (space, space))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        matcher().here = True  # no other process can be started from now on
    in_force = walls.enclose(Path(path), None if scratch is None else Path(scratch))
    watch_parent()
    yield in_force


def facts_of(source: Source) -> Facts:
    return {
        "path": str(source.path),
        "title": source.title,
        "settings": source.settings,
        "partial": source.partial,
        "siblings": tuple(map(str, source.siblings)),
        "notes": tuple(source.notes)[:MOST_NOTES],
        "labels": np.asarray(source.labels, np.int64),
        "processes": source.processes,
        "has_losses": source.has_losses,
        "why_no_losses": source.why_no_losses,
    }


READ: dict[str, tuple[Any, Callable[..., object]]] = {
    "vocabulary": (tuple[str, ...], lambda source: tuple(source.vocabulary)),
    "notes": (tuple[str, ...], lambda source: tuple(source.notes)[:MOST_NOTES]),
    "step": (Step, lambda source, position: source.step(position)),
    "completions": (Completions, lambda source, position: source.completions(position)),
    "measured": (tuple[Completions | None, Step | None], lambda source, position: source.measured(position)),
    "reports": (list[Report], lambda source, position: list(source.reports(position))),
    "stamps": (list[tuple[int, ...]], lambda source, first, last: source.stamps(first, last)),
    "losses": (np.ndarray | None, lambda source, position: source.losses(position)),
    "incomplete": (str, lambda source, position: source.incomplete(position)),
}
"""Type and reader of data of an open source, by name."""


def prompts(
    path: str, checker: str, longest: int | None, *, poll: Poll
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], str]]:
    """Yield the prompts of a file, their answers and system prompts, and a message about what was left out."""
    from grpo_core.lm.prompt_file import read_prompts

    read = read_prompts(Path(path), checker=checker, longest=longest, poll=poll)
    texts, answers, systems = zip(*((one.text, one.answer, one.system) for one in read), strict=True)
    yield texts, answers, systems, read.left_out


def session(path: str, scratch: str, *, poll: Poll) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the manifest of a session file and the copies of its runs, created in ``scratch``."""
    from grpo_core.runs.manifest import manifest_text
    from grpo_core.runs.session import open_session

    manifest, copies = open_session(Path(path), Path(scratch), poll)
    yield manifest_text(manifest), tuple(map(str, copies))


def converted_run(path: str, *, poll: Poll) -> Iterator[bool]:
    """Yield whether the run file contains a converted run of another trainer.

    To detect damage, also read everything that a window reads when it opens the file.

    Raises:
        RunFileError: it cannot be read.
    """
    with RunReader.open(Path(path)) as reader:
        _ = reader.origin, reader.settings_changes()
        yield reader.meta.settings.is_recorded


FILES: dict[str, Answer] = {
    "enclose": enclosed,
    "probe": probe,
    "prompts": prompts,
    "session": session,
    "converted_run": converted_run,
}
"""Readers of untrusted files other than sources, by the name of the request."""


def files_table() -> dict[str, Answer]:
    """Return the readers of untrusted files other than sources and the computations on a source, by name."""
    return {**FILES, **parts.merged("requests")}


def kind_of_reply(what: str) -> Any:
    """Return the type of the replies to the request ``what`` (:func:`grpo_core.foreign.replies.fits`)."""
    ours = {**Sources().table(), **FILES}
    return yielded_by(ours[what] if what in ours else files_table()[what])  # a part takes 0.1 s to import


def serve(connection: Connection) -> None:
    table = {what: guarded(asked) for what, asked in {**Sources().table(), **files_table()}.items()}
    answer(connection, table, pack_bounded, unpacked)


def guarded(asked: Answer) -> Answer:
    """Wrap ``asked`` with a limit on processor time, and convert all its errors into messages."""

    def answered(*arguments: object, poll: Poll) -> Iterator[object]:
        allow()

        def renewed(*fraction: float) -> None:
            allow()
            poll(*fraction)

        try:
            yield from asked(*arguments, poll=renewed)
        except MemoryError:
            raise
        except GrpoError as error:
            if len(str(error)) <= LONGEST_SENTENCE:
                raise
            raise RunFileError(shortened(error, LONGEST_SENTENCE)) from None  # a window would lay out all of it
        except OSError as error:
            where = error.filename or tr("The file")
            raise RunFileError(
                tr("{path} cannot be read: {why}.").format(path=where, why=error.strerror or error)
            ) from None
        except Exception as error:
            raise RunFileError(
                tr("The recording cannot be read: it contains something that no trainer writes ({error}).").format(
                    error=f"{type(error).__name__}: {shortened(error)}"
                )
            ) from None

    return answered


def allow(seconds: int = PROCESSOR_SECONDS) -> None:
    """Allow this process another ``seconds`` of processor time, if the system supports limits."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(
            resource.RLIMIT_CPU, (int(time.process_time()) + seconds, resource.getrlimit(resource.RLIMIT_CPU)[1])
        )


def pack_bounded(value: object) -> tuple[Tree, Sequence[bytes]]:
    """Pack a reply with :func:`grpo_core.packing.packed`.

    Raises:
        RunFileError: the reply is too large to be sent.
    """
    tree, blobs = packed(value)
    size = sum(map(len, blobs)) / LARGEST_ANSWER + _characters(tree) / LONGEST_TEXT
    if size > 1:
        raise RunFileError(
            tr("This update contains {times:.1f} times as many numbers and texts as can be shown.").format(times=size)
        )
    return tree, blobs


def _characters(tree: Tree) -> int:
    match tree:
        case str():
            return len(tree)
        case {"strings": texts}:
            return sum(len(text) for text in texts if text is not None)
        case dict():
            return sum(map(_characters, tree.values()))
        case [*values]:
            return sum(map(_characters, values))
        case _:
            return 0
