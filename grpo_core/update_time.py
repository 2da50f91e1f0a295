"""Time of an update of a model from a folder, measured in its process, shown before the first update, and kept between
sessions of the program.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

from grpo_core.config import Settings
from grpo_core.text import tr


@dataclass(frozen=True, kw_only=True)
class RunQuestion:
    """A question about a run without an update.

    Attributes:
        run: id of the run.
        step: number of the next update, before which the model answers.
    """

    KIND: ClassVar[str]
    run: str
    step: int = 1

    def to_json(self) -> str:
        """Return the question as one line of JSON. The inverse of :func:`grpo_core.questions.question_from_json`."""
        return json.dumps({"run": self.run, "step": self.step, self.KIND: True}, sort_keys=True)


class UpdateTimeQuestion(RunQuestion):
    """A request to measure how long an update takes on this machine."""

    KIND = "update_time"


@dataclass(frozen=True, kw_only=True)
class UpdateTime:
    """Measured time of an update with the longest completions, in seconds.

    Attributes:
        learning: time for scoring and learning, in all passes.
        loading: time for loading the model beforehand.
    """

    sampling: float
    learning: float
    device: str
    loading: float = 0.0

    @property
    def sentence(self) -> str:
        """Sentence that states the time of an update, shown before the user presses Run."""
        return tr(
            "An update takes up to {whole} s here ({device}): {sampling} s of sampling and {learning} s of learning, "
            "as measured."
        ).format(
            whole=_rounded(self.sampling + self.learning),
            sampling=_rounded(self.sampling),
            learning=_rounded(self.learning),
            device=self.device.upper(),
        )

    @property
    def brief(self) -> str:
        return tr("An update takes up to {whole} s here ({device}), as measured.").format(
            whole=_rounded(self.sampling + self.learning), device=self.device.upper()
        )

    @property
    def remembered(self) -> str:
        """Sentence that states a stored measurement, shown before the model is loaded again."""
        return tr(
            "When it was last loaded here ({device}), loading took {loading} s and an update up to {whole} s."
        ).format(
            device=self.device.upper(), loading=_rounded(self.loading), whole=_rounded(self.sampling + self.learning)
        )

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> UpdateTime:
        """Restore a measurement from the line returned by :meth:`to_json`.

        Raises:
            ValueError: the text is not such a line.
        """
        stored = json.loads(text)
        seconds = [stored.get(name) for name in ("sampling", "learning", "loading")]
        if not all(isinstance(one, float) and math.isfinite(one) for one in seconds):
            raise ValueError("what should be seconds are not numbers")
        return cls(sampling=seconds[0], learning=seconds[1], loading=seconds[2], device=str(stored["device"]))


UNMEASURED = tr("The time for an update is measured once the model is loaded; until then it is unknown.")
"""Message that is shown if no earlier measurement is stored."""


def _rounded(seconds: float) -> str:
    """Format a number with two digits, or as whole seconds if these have more digits. Never as a power of ten."""
    return f"{seconds:,.0f}" if seconds >= 10 else f"{seconds:.2g}"


MOST = 100
"""Maximum number of measurements kept; the oldest are dropped."""
LARGEST = 100_000
"""Size in bytes above which the file cannot be one of ours and is ignored."""


class StoredTimes:
    """The file of measurements. An unreadable file counts as empty, and a failure to write is ignored."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def of(self, settings: Settings) -> UpdateTime | None:
        """Return the measurement for the model under settings in which an update takes the same time, or None."""
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
