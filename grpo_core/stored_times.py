"""Measured times of updates on this machine, kept between sessions of the program."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path

from grpo_core.config import Settings
from grpo_core.update_time import UNMEASURED, UpdateTime

MOST = 100
"""Maximum number of measurements kept; the oldest are dropped."""
LARGEST = 100_000
"""Size in bytes above which the file cannot be one of ours and is ignored."""


class StoredTimes:
    """The file of measurements. An unreadable file counts as empty, and a failure to write is ignored.

    Args:
        path: path of the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def of(self, settings: Settings) -> UpdateTime | None:
        """Return the measurement for the same model under settings with which an update takes the same time, or
        None if there is none.
        """
        stored = self._read().get(_key(settings))
        if not isinstance(stored, str):
            return None
        with contextlib.suppress(ValueError, KeyError, AttributeError):
            return UpdateTime.from_json(stored)
        return None

    def sentence(self, settings: Settings) -> str:
        """Return the sentence about an update's time, which is shown before the model is loaded."""
        known = self.of(settings)
        return UNMEASURED if known is None else known.remembered

    def keep(self, settings: Settings, time: UpdateTime) -> None:
        """Store the measured ``time`` of an update under ``settings``."""
        stored, key = self._read(), _key(settings)
        stored.pop(key, None)  # re-inserted at the end: the newest is last
        stored[key] = time.to_json()
        kept = dict([*stored.items()][-MOST:])
        partial = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        with contextlib.suppress(OSError):
            partial.write_text(json.dumps(kept), encoding="utf-8")
            partial.replace(self._path)

    def _read(self) -> dict[str, object]:
        with contextlib.suppress(OSError, ValueError):
            if self._path.stat().st_size <= LARGEST:
                read = json.loads(self._path.read_text(encoding="utf-8"))
                if isinstance(read, dict):
                    return read
        return {}


def _key(settings: Settings) -> str:
    """Return the key shared by all settings under which an update takes the same time: the model's files, the amount of
    computation, and the number of threads.
    """
    model, task, learner = settings.model, settings.language, settings.learner
    counts = (
        model.digest,
        model.device,
        model.precision,
        model.threads,
        model.adapter_rank,
        model.rows_at_once,
        model.checkpointing,
        settings.objective.beta != 0 or model.watch_reference,
        learner.group_size,
        learner.mu,
        task.prompts,
        task.max_tokens,
        task.problem,
    )
    return hashlib.sha256(repr(counts).encode()).hexdigest()[:16]
