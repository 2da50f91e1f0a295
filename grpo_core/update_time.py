"""Time of an update of a model from a folder, measured in its process and shown before the first update."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass

from grpo_core.text import tr


@dataclass(frozen=True, kw_only=True)
class UpdateTimeQuestion:
    """A request to measure how long an update takes on this machine, for a run without an update.

    Attributes:
        run: id of the run.
        step: the number of the next update.
    """

    run: str
    step: int = 1

    def to_json(self) -> str:
        """Return the question as one line of JSON. The inverse of :func:`grpo_core.questions.question_from_json`."""
        return json.dumps({"run": self.run, "step": self.step, "update_time": True}, sort_keys=True)


@dataclass(frozen=True, kw_only=True)
class UpdateTime:
    """Measured time of an update with the longest completions, in seconds.

    Attributes:
        sampling: time for sampling the completions.
        learning: time for scoring and learning, in all passes.
        device: the device that was measured.
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
        """Short form of :attr:`sentence`."""
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
        """Return the measurement as one line of JSON. The inverse of :meth:`from_json`."""
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
