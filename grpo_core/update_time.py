"""Time of an update of a model from a folder on this machine: asked of its process, shown before the first."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass

from grpo_core.text import tr


@dataclass(frozen=True, kw_only=True)
class UpdateTimeQuestion:
    """Asks a run without an update how long an update takes here.

    Attributes:
        run: id of that run.
        step: the update that would be next.
    """

    run: str
    step: int = 1

    def to_json(self) -> str:
        """One line. :func:`grpo_core.questions.question_from_json` reads it back."""
        return json.dumps({"run": self.run, "step": self.step, "update_time": True}, sort_keys=True)


@dataclass(frozen=True, kw_only=True)
class UpdateTime:
    """Time of an update of the longest completions, in seconds.

    Attributes:
        sampling: drawing them.
        learning: scoring and learning, all passes.
        device: where it was measured.
        loading: seconds that loading the model took before.
    """

    sampling: float
    learning: float
    device: str
    loading: float = 0.0

    @property
    def sentence(self) -> str:
        """For people, before they press Run."""
        return tr(
            "An update takes up to {whole} s here ({device}): {sampling} s of sampling and {learning} s of learning, "
            "as measured."
        ).format(
            whole=_rounded(self.sampling + self.learning), sampling=_rounded(self.sampling),
            learning=_rounded(self.learning), device=self.device.upper(),
        )  # fmt: skip

    @property
    def brief(self) -> str:
        """:attr:`sentence` for a line without room for it."""
        return tr("An update takes up to {whole} s here ({device}), as measured.").format(
            whole=_rounded(self.sampling + self.learning), device=self.device.upper()
        )

    @property
    def remembered(self) -> str:
        """The sentence before the model is loaded again, for a measurement of an earlier time."""
        return tr(
            "When it was loaded here last ({device}), loading took {loading} s and an update up to {whole} s."
        ).format(
            device=self.device.upper(), loading=_rounded(self.loading), whole=_rounded(self.sampling + self.learning)
        )  # fmt: skip

    def to_json(self) -> str:
        """One line. :meth:`from_json` reads it back."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> UpdateTime:
        """The inverse of :meth:`to_json`.

        Raises:
            ValueError: it is no such line.
        """
        stored = json.loads(text)
        seconds = [stored.get(name) for name in ("sampling", "learning", "loading")]
        if not all(isinstance(one, float) and math.isfinite(one) for one in seconds):
            raise ValueError("what should be seconds are none")
        return cls(sampling=seconds[0], learning=seconds[1], loading=seconds[2], device=str(stored["device"]))


UNMEASURED = tr("How long an update takes is measured once the model is loaded; until then it is not known.")
"""Said where no measurement of an earlier time is kept."""


def _rounded(seconds: float) -> str:
    """Two digits, or whole seconds where these are more. Never as a power of ten."""
    return f"{seconds:,.0f}" if seconds >= 10 else f"{seconds:.2g}"
