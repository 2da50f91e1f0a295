"""The calls that a cluster's workers can answer, and the byte format of calls and answers.

The format is that of ``packing.py`` with a digest. Workers with other versions are rejected, since the same seeds would
not give the same bits there. Workers with another kind of processor are accepted: their results are the same up to
rounding.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypedDict, get_type_hints

import numpy as np

from grpo_core import __version__
from grpo_core.config import Settings
from grpo_core.errors import Cancelled, GrpoError, NonFiniteError, shortened
from grpo_core.experiments.ensemble import Ensemble, ensembles
from grpo_core.experiments.repeats import SERIES, Repeats, repeated
from grpo_core.foreign.replies import fits
from grpo_core.packing import packed, unpacked
from grpo_core.parsing import from_json
from grpo_core.queue.queue import Planned
from grpo_core.queue.training import trained_until
from grpo_core.text import tr

Crossing = tuple[list[bytes], str, str]
"""A serialised value: its arrays, its tree as JSON, and the digest of both. Dask inspects the first part to determine
whether it can send the bytes unchanged, without pickling.
"""
LONGEST_PROBLEM = 2_000
"""Maximum number of characters of a worker's problem that are shown."""


def versions() -> dict[str, str]:
    """Return the versions that affect the bits of results, by name."""
    python = ".".join(platform.python_version_tuple()[:2])
    return {"GRPO Lab": __version__, "NumPy": np.__version__, "Python": python}


def apart(theirs: Mapping[str, str]) -> str:
    """Return the first version that differs, as the end of a sentence. Empty if all are equal."""
    for name, here in versions().items():
        if theirs.get(name) != here:
            return tr("has {name} {theirs}, but this machine has {here}; install the same version on both.").format(
                name=name, theirs=theirs.get(name), here=here
            )
    return ""


def answered(call: str, crossing: Crossing, wanted: Mapping[str, str]) -> Crossing:
    """Answer a call on a worker. The answer has a “result”, or a “problem” that is an error message."""
    from distributed import get_worker

    worker = get_worker()
    sentence = apart(wanted)
    if sentence:  # from a worker that joined later
        return sealed({"problem": tr("The client of this cluster {sentence}").format(sentence=sentence)})
    task = worker.get_current_task()

    def poll() -> None:
        known = worker.state.tasks.get(task)
        if known is None or known.state == "cancelled":
            raise Cancelled(tr("The call was cancelled."))

    try:
        return sealed({"result": CALLS[call](*opened(crossing), poll=poll)})
    except GrpoError as error:
        return sealed({"problem": f"{worker.address}: {error}"})
    except Exception as error:  # which Dask would send as a pickle
        return sealed({"problem": f"{worker.address}: {type(error).__name__}: {shortened(error)}"})


class Ran(TypedDict):
    """Answer of a worker that trained a run.

    Attributes:
        made: number, metrics and note of each new update.
        trouble: why the run ended early, or empty.
        last: the last update of a run that ended early.
        file: bytes of the run's file.
    """

    made: list[tuple[int, dict[str, float], str]]
    trouble: str
    last: int
    file: np.ndarray


def _ensembles(
    points: list[Settings], seeds: tuple[int, ...], updates: int, *, poll: Callable[[], None]
) -> list[Ensemble]:
    with np.errstate(over="ignore", invalid="ignore"):
        return [*ensembles(points, seeds, updates, poll=poll)]


def _run(settings: Settings, title: str, updates: int, file: np.ndarray, *, poll: Callable[[], None]) -> Ran:
    """Train the run in ``file`` until it has ``updates`` updates."""
    with TemporaryDirectory() as folder:
        run = Planned(settings=settings, file="run.grpo", title=title)
        path = Path(folder) / run.file
        if file.size:
            path.write_bytes(file.tobytes())
        made: list[tuple[int, dict[str, float], str]] = []
        trouble, last = "", 0
        try:
            for done, scalars, note in trained_until(path, run, updates, poll):
                made.append((done, dict(scalars), note))
        except NonFiniteError as error:
            trouble, last = str(error), error.step - 1
        return {"made": made, "trouble": trouble, "last": last, "file": np.frombuffer(path.read_bytes(), np.uint8)}


def _repeats(settings: Settings, seeds: tuple[int, ...], count: int, *, poll: Callable[[], None]) -> list[Repeats]:
    return [*repeated(settings, seeds, count, poll=poll)]


CALLS: dict[str, Callable[..., object]] = {"ensembles": _ensembles, "repeats": _repeats, "run": _run}
"""All calls that a worker can answer, by name."""


def _are_ensembles(found: list[Ensemble], points: list[Settings], seeds: tuple[int, ...], updates: int) -> bool:
    """Return whether these are ensembles of ``points``, with the shapes of one that is trained here."""
    (own,) = ensembles(points[:1], seeds[:1], 1)
    shapes = dict.fromkeys(own.measures, (updates + 1, len(seeds)))
    asked = [(point, seeds, shapes, (len(seeds), *own.policy.shape[1:])) for point in points]
    return asked == [(one.settings, one.seeds, _shapes(one.measures), one.policy.shape) for one in found]


def _are_repeats(found: list[Repeats], settings: Settings, seeds: tuple[int, ...], count: int) -> bool:
    """Return whether these are ``count`` updates in order, with the shapes of one that is computed here."""
    (own,) = repeated(settings, seeds[:1], 1)
    rows = [len(part.series[SERIES[0]]) for part in found]
    return sum(rows) == count and all(
        part.first == 1 + sum(rows[:place])
        and _shapes(part.series) == dict.fromkeys(own.series, (rows[place], len(seeds)))
        and part.likeliest.shape == (len(seeds), *own.likeliest.shape[1:])
        and (None if part.best_prob is None else part.best_prob.shape)
        == (None if own.best_prob is None else (rows[place], len(seeds)))
        for place, part in enumerate(found)
    )


def _shapes(arrays: Mapping[str, np.ndarray]) -> dict[str, tuple[int, ...]]:
    return {name: array.shape for name, array in arrays.items()}


CHECKS: dict[str, Callable[..., bool]] = {"ensembles": _are_ensembles, "repeats": _are_repeats}
"""Functions that compare the result of a call with its arguments, by the name of the call."""


def opened_result(call: str, arguments: tuple[Any, ...], crossing: Crossing) -> Any:
    """Unpack the result of the call named ``call``. Whoever sent it is not trusted.

    Raises:
        GrpoError: the worker answered with a problem, or with something else than this call returns.
    """
    try:
        match opened(crossing):
            case {"problem": str(problem)}:
                raise GrpoError(shortened(problem, LONGEST_PROBLEM))
            case {"result": result} if fits(result, get_type_hints(CALLS[call])["return"]):
                if call not in CHECKS or CHECKS[call](result, *arguments):
                    return result
    except GrpoError:
        raise
    except Exception as error:
        raise unexpected(f"{type(error).__name__}: {shortened(error)}") from None
    raise unexpected(tr("it is not the result of this call"))


def unexpected(why: str) -> GrpoError:
    """Return the error that a worker sent something that it was not asked for."""
    return GrpoError(tr("A worker of the cluster sent an answer that is not used: {why}.").format(why=why))


def sealed(value: object) -> Crossing:
    """Serialise ``value`` to bytes with their digest."""
    tree, blobs = packed(value)
    text = json.dumps(tree)
    return blobs, text, digest_of(text, blobs)


def opened(crossing: Crossing) -> Any:
    """Return the value serialised by :func:`sealed`.

    Raises:
        GrpoError: the bytes differ from those that were sent.
    """
    blobs, text, digest = crossing
    if digest_of(text, blobs) != digest:
        raise GrpoError(tr("The data received over the network is damaged; try again."))
    return unpacked(from_json(text), blobs)


def digest_of(text: str, blobs: Sequence[bytes]) -> str:
    found = hashlib.sha256(text.encode())
    for blob in blobs:
        found.update(blob)
    return found.hexdigest()
