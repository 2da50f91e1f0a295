"""A worker of Dask whose answers are lies, for tests: ``dask worker --preload`` runs this file, which replaces the
function that answers calls. A file says which lie it is.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from grpo_core.jobs import cluster_calls
from grpo_core.jobs.cluster_calls import CALLS, Crossing, opened, sealed

LIE, TOUCHED = "GRPO_LYING_WORKER_LIE", "GRPO_LYING_WORKER_TOUCHES"
"""Environment variables with paths: of the file that names the lie, and of the file that a pickle makes if it runs."""


class Runs:
    """A value whose pickle runs a program where it is read, except in the process with the number ``spared``."""

    def __init__(self, spared: int = 0) -> None:
        self.spared = spared

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return os.system, (f"[ $PPID = {self.spared} ] || touch '{os.environ[TOUCHED]}'",)


class Fails(Exception):  # noqa: N818 # a name like any other
    """An error whose pickle does the same. The worker itself, which reads it too, is spared."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return Runs(os.getpid()).__reduce__()


def honest(crossing: Crossing) -> Any:
    return CALLS["ensembles"](*opened(crossing), poll=lambda: None)


def raising(error: BaseException) -> Any:
    raise error


def changed(result: list[Any], **fields: Any) -> Crossing:
    return sealed({"result": [dataclasses.replace(one, **fields) for one in result]})


def trained(crossing: Crossing, **fields: Any) -> Crossing:
    """Train the run that was asked for, and change fields of the answer."""
    answer: Any = CALLS["run"](*opened(crossing), poll=lambda: None)
    return sealed({"result": {**answer, **fields}})


def another_run(crossing: Crossing) -> Crossing:
    """Train another run from its beginning."""
    settings, title, updates, _ = opened(crossing)
    settings = settings.replace({"seed": settings.seed + 1})
    return sealed({"result": CALLS["run"](settings, title, updates, NO_FILE[:0], poll=lambda: None)})


def redigested(text: str) -> Crossing:
    blobs: list[bytes] = []
    return blobs, text, cluster_calls.digest_of(text, blobs)


LIES: dict[str, Callable[[Crossing], Any]] = {
    "a pickle": lambda crossing: Runs(),
    "a pickle in a list": lambda crossing: ([Runs()], "", ""),
    "a pickle in place of bytes": lambda crossing: ([b""], Runs(), ""),
    "an error that is a pickle": lambda crossing: raising(Fails()),
    "an array": lambda crossing: np.arange(3),
    "nothing": lambda crossing: None,
    "no JSON": lambda crossing: redigested("{"),
    "JSON that is nested deeply": lambda crossing: redigested("[" * 100_000),
    "an unknown kind": lambda crossing: redigested('{"dict": [["result", {"kind": "os.system", "fields": {}}]]}'),
    "an array that is not there": lambda crossing: redigested(
        '{"dict": [["result", {"array": 7, "dtype": "<f8", "shape": [3]}]]}'
    ),
    "another digest": lambda crossing: (*sealed({"result": []})[:2], "0" * 64),
    "another result": lambda crossing: sealed({"result": {"made": []}}),
    "no result": lambda crossing: sealed({"problems": "none"}),
    "a problem that is a number": lambda crossing: sealed({"problem": 3}),
    "too few runs": lambda crossing: sealed({"result": honest(crossing)[:-1]}),
    "runs of other settings": lambda crossing: changed(
        honest(crossing), settings=opened(crossing)[0][0].replace({"learner.group_size": 2})
    ),
    "other seeds": lambda crossing: changed(honest(crossing), seeds=(1, 2)),
    "no measures": lambda crossing: changed(honest(crossing), measures={}),
    "measures of another shape": lambda crossing: changed(
        honest(crossing), measures=dict.fromkeys(honest(crossing)[0].measures, np.zeros(3))
    ),
    "a policy of another shape": lambda crossing: changed(honest(crossing), policy=np.zeros((2, 1))),
    "an answer of 200 MB": lambda crossing: ([bytes(200 << 20)], "", ""),
}
"""Answers to a call for ensembles, by what they are."""

NO_FILE = np.frombuffer(b"no run file" * 999, np.uint8)
LIES_OF_RUNS: dict[str, Callable[[Crossing], Any]] = {
    "a file that is none": lambda crossing: trained(crossing, file=NO_FILE),
    "an empty file": lambda crossing: trained(crossing, file=NO_FILE[:0]),
    "numbers in place of a file": lambda crossing: trained(crossing, file=np.zeros((3, 3))),
    "a run with other settings": another_run,
    "updates that are not in the file": lambda crossing: trained(crossing, made=[(99, {}, "")]),
    "fewer updates than there were": lambda crossing: trained(crossing, made=[], file=NO_FILE),
    "metrics that are texts": lambda crossing: trained(crossing, made=[(1, {"loss": "high"}, "")]),
}
"""Answers to a call for more updates of a run, by what they are."""


def answered(call: str, crossing: Crossing, wanted: Mapping[str, str]) -> Any:
    """Answer with the lie that the file names."""
    return {**LIES, **LIES_OF_RUNS}[Path(os.environ[LIE]).read_text(encoding="utf-8")](crossing)


def dask_setup(worker: Any) -> None:
    """Replace the answers of a worker that starts."""
    cluster_calls.answered = answered
