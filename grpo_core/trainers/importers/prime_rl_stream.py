"""Episodes of prime-rl since September 2026: a stream in numbered chunks, and annotations that are folded onto it.

After the source code of prime-rl (``monitors/file/traces/``: ``chunks.py`` 551bfc3, ``update.py`` 65a1858, ``index.py``
13e96a1; ``orchestrator/annotations.py`` 96e0cf4). An episode is written once, to ``traces/stream/00000.jsonl``, which
becomes ``00000.jsonl.zst`` (zstd in frames with a seek table) once it is full. ``traces/stream.index.jsonl`` has the
chunk and the offset of each. What is learned later is an update in ``traces/annotations/NAME/``: the step that
trained on a trace (``ship``), its advantages, the trainer's log-probabilities and entropies. Each stream of numbers
covers all tokens of a branch, null where the trainer's mask leaves one out; the newest update counts.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from grpo_core.errors import GrpoError, RunFileError
from grpo_core.foreign.recording import file_stamp
from grpo_core.regular_file import opened_regular
from grpo_core.text import tr
from grpo_core.trainers.importers.parquet import unpacked
from grpo_core.trainers.importers.records import LONGEST_LINE, complete_lines
from grpo_core.trainers.importers.verifiers_rows import branches
from grpo_core.trainers.importers.verifiers_tokens import as_dict

PLACES = ("monitors/file/traces", "traces", "")
"""Folders in a run, or itself, that can contain the stream."""
STREAM, ANNOTATIONS = "stream", "annotations"
FIELDS = ("advantages", "trainer_logprobs", "entropies", "is_masked")
"""Streams of numbers that an update can have."""
TABLE, MAGIC = 0x184D2A5E, 0x8F92EAB1
"""First and last number of the seek table at the end of a compressed chunk."""
LARGEST_FRAME, MOST_FRAMES = 1 << 28, 1 << 20
"""Maximum size of a frame in bytes, of which prime-rl writes 4 MiB, and maximum number of frames."""

Place = tuple[int, int]
"""Chunk and byte offset of a line."""


def traces_in(path: Path) -> Path | None:
    """Return the folder with the stream of the run at ``path``. None if there is none."""
    folders = (path / place for place in PLACES)
    return next(
        (folder for folder in folders if (folder / STREAM).is_dir() and _index(folder / STREAM).is_file()), None
    )


class Chunks:
    """The lines of a stream, by chunk and offset."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._frames: dict[Path, list[tuple[int, int, int, int]]] = {}
        self._latest: tuple[Path, int, bytes] | None = None

    def value(self, place: Place) -> dict[str, Any]:
        """Return the object at a place.

        Raises:
            RunFileError: it cannot be read.
            ValueError: it is not a JSON object.
        """
        plain = self.folder / f"{place[0]:05d}.jsonl"
        try:
            if plain.is_file():
                with opened_regular(plain) as file:
                    file.seek(place[1])
                    line = file.readline(LONGEST_LINE)
            else:
                line = self._sealed(plain.with_name(plain.name + ".zst"), place[1])
            value = json.loads(line)
        except (OSError, OverflowError, RecursionError, struct.error) as error:
            raise RunFileError(
                tr("Chunk {number} of {folder} cannot be read: {error}.").format(
                    number=place[0], folder=self.folder.name, error=" ".join(str(error).split())[:200]
                )
            ) from None
        if not isinstance(value, dict):
            raise ValueError("no object")
        return value

    def _sealed(self, path: Path, offset: int) -> bytes:
        """Return the line at an offset of the content of a compressed chunk."""
        if path not in self._frames:
            self._frames[path] = seek_table(path)
        line = b""
        for number, (_, _, start, size) in enumerate(self._frames[path]):
            if start + size <= offset:
                continue
            content = self._content(path, number)
            line += content[max(offset - start, 0) :].split(b"\n", 1)[0]
            if content.find(b"\n", max(offset - start, 0)) >= 0 or len(line) > LONGEST_LINE:
                break
        return line[:LONGEST_LINE]

    def _content(self, path: Path, number: int) -> bytes:
        if self._latest is None or self._latest[:2] != (path, number):
            first, length, _, size = self._frames[path][number]
            with opened_regular(path) as file:
                file.seek(first)
                packed = file.read(length)
            content = unpacked(packed, size)
            self._latest = path, number, content
        return self._latest[2]


def seek_table(path: Path) -> list[tuple[int, int, int, int]]:
    """Return the frames of a compressed chunk: first byte and length in the file, first byte and length of the content.

    Raises:
        OSError: it cannot be read, or has no sound seek table at its end.
    """
    wrong = OSError(tr("{name} has no seek table, or is damaged; unpack it with zstd -d").format(name=path.name))
    with opened_regular(path) as file:
        whole = file.seek(0, os.SEEK_END)
        if whole < 17:
            raise wrong
        file.seek(whole - 9)
        count, kind, magic = struct.unpack("<IBI", file.read(9))
        width = 12 if kind & 0x80 else 8
        size = count * width + 9
        if magic != MAGIC or count > MOST_FRAMES or size + 8 > whole:
            raise wrong
        file.seek(whole - size - 8)
        if struct.unpack("<II", file.read(8)) != (TABLE, size):
            raise wrong
        entries = file.read(count * width)
    frames, first, start = [], 0, 0
    for at in range(0, len(entries), width):
        length, content = struct.unpack_from("<II", entries, at)
        if content > LARGEST_FRAME:
            raise wrong
        frames.append((first, length, start, content))
        first, start = first + length, start + content
    if first != whole - size - 8:
        raise wrong
    return frames


class EpisodeStream:
    """The episodes of a run by training step, as of when it was read.

    Attributes:
        folder: the folder ``traces``.
        places: training step -> places of its episodes, in the order in which they arrived.
        evaluations: number of episodes that were evaluations and are left out.
    """

    def __init__(self, folder: Path, notes: list[str], before: EpisodeStream | None = None) -> None:
        """Read the indexes.

        Args:
            before: the same stream as of an earlier time, whose lines need not be read again.
        """
        self.folder = folder
        self._stream = Chunks(folder / STREAM)
        self._known: dict[Place, int] = {} if before is None else before._known
        self._producers = {
            name.name: Chunks(name) for name in sorted((folder / ANNOTATIONS).glob("*")) if name.is_dir()
        }
        self._updates: dict[str, list[tuple[str, Place]]] = {}
        shipped: dict[str, int] = {}
        for producer, chunks in self._producers.items():
            for row in complete_lines(_index(chunks.folder), notes):
                place, trace = _place(row), as_dict(row).get("trace_id")
                if place is not None and isinstance(trace, str):
                    self._updates.setdefault(trace, []).append((producer, place))
                    step = as_dict(as_dict(as_dict(row).get("info")).get("ship")).get("step")
                    if type(step) is int and 0 <= step < 2**60:
                        shipped[trace] = step
        self.places: dict[int, list[Place]] = {}
        self.evaluations = 0
        for row in complete_lines(_index(self._stream.folder), notes):
            place = _place(row)
            if place is None or row.get("kind") == "eval":
                self.evaluations += place is not None
                continue
            traces = row.get("trace_ids")
            steps = [shipped[one] for one in traces if one in shipped] if isinstance(traces, list) else []
            label = steps[0] if steps else self._arrived(place)
            self.places.setdefault(label, []).append(place)

    def stamp(self, label: int) -> tuple[int, ...]:
        """Return integers that change when more becomes known about a step."""
        indexes = (_index(chunks.folder) for chunks in self._producers.values())
        return (len(self.places[label]), *(n for index in indexes for n in file_stamp(index)))

    def episodes(self, label: int, notes: list[str]) -> Iterator[dict[str, Any]]:
        """Yield the episodes of a step, with all updates. What cannot be read is noted."""
        for place in self.places[label]:
            try:
                episode = self._stream.value(place)
            except (GrpoError, ValueError) as error:
                notes.append(tr("An episode of step {label} is left out: {error}").format(label=label, error=error))
                continue
            for trace in map(as_dict, episode.get("traces") or []):
                for producer, where in self._updates.get(str(trace.get("id")), []):
                    with suppress(GrpoError, ValueError, LookupError, TypeError, AttributeError):
                        fold(trace, self._producers[producer].value(where))
            yield episode

    def _arrived(self, place: Place) -> int:
        """Return the step at which an episode that was not trained on arrived, or else that which asked for it."""
        if place not in self._known:
            steps: list[Any] = []
            with suppress(GrpoError, ValueError, TypeError):
                episode = self._stream.value(place)
                traces = [as_dict(as_dict(trace).get("info")) for trace in episode.get("traces") or []]
                steps = [as_dict(info.get("arrival")).get("step") for info in traces]
                steps.append(as_dict(as_dict(episode.get("run")).get("work")).get("step"))
            self._known[place] = next((one for one in steps if type(one) is int and 0 <= one < 2**60), 1)
        return self._known[place]


def fold(trace: dict[str, Any], update: dict[str, Any]) -> None:
    """Apply an update to a trace, in place.

    A node takes a stream if it has a number for every sampled token. ``is_masked`` may lack some.

    Raises:
        ValueError, LookupError, TypeError, AttributeError: it is not what prime-rl writes.
    """
    trace["info"] = {**as_dict(trace.get("info")), **as_dict(update.get("info"))}
    nodes = trace["nodes"]
    paths = list(branches(nodes, sampled=False))
    for branch in update.get("branches") or []:
        path = paths[branch["index"]] if 0 <= branch["index"] < len(paths) else []
        for name in FIELDS:
            stream, at = branch.get(name) or [], 0
            for node in (nodes[place] for place in path):
                ids = node.get("token_ids") or []
                span, at = stream[at : at + len(ids)], at + len(ids)
                if len(span) < len(ids):
                    break
                values = [value for value, sampled in zip(span, node.get("mask") or [], strict=False) if sampled]
                missing = [value is None for value in values]
                if values and not (all(missing) if name == "is_masked" else any(missing)):
                    node[name] = values


def _index(folder: Path) -> Path:
    """Return the index of a stream, which lies beside its folder."""
    return folder.with_name(f"{folder.name}.index.jsonl")


def _place(row: Any) -> Place | None:
    chunk, offset = as_dict(row).get("chunk"), as_dict(row).get("offset")
    if not (isinstance(chunk, int) and isinstance(offset, int)):
        return None
    return (chunk, offset) if 0 <= chunk < 10**6 and 0 <= offset < 2**62 else None
