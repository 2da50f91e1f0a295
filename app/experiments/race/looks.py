"""Line styles and short names of algorithms, the same in every race.

This is the only place in the program where colours distinguish algorithms. GRPO has the colour of the policy. Each
of the usual six algorithms has its own colour; the others share one, and differ in line style and in the label at the
end of the line.
"""

from __future__ import annotations

from typing import NamedTuple

from PySide6.QtCore import Qt

_Line = Qt.PenStyle


class LaneLook(NamedTuple):
    """A line style: the theme's name for a colour, and a pen style."""

    meaning: str
    line: Qt.PenStyle


LOOKS: dict[str, LaneLook] = {
    "GRPO (DeepSeekMath)": LaneLook("policy", _Line.SolidLine),
    "Dr. GRPO": LaneLook("kl", _Line.DashDotDotLine),
    "RLOO": LaneLook("entropy", _Line.DotLine),
    "PPO-clip": LaneLook("text", _Line.DashDotLine),
    "REINFORCE": LaneLook("push_down", _Line.DashLine),
    "REINFORCE + baseline": LaneLook("reward", _Line.SolidLine),
    "REINFORCE + running mean": LaneLook("push_down", _Line.DotLine),
    "GRPO (TRL 1.16 defaults)": LaneLook("policy", _Line.DashLine),
    "GRPO (TRL 1.16 with vLLM)": LaneLook("policy", _Line.DashDotDotLine),
    "GRPO (verl 0.9 defaults)": LaneLook("policy", _Line.DotLine),
    "DAPO": LaneLook("entropy", _Line.SolidLine),
    "BNPO": LaneLook("policy", _Line.DashDotLine),
    "GSPO": LaneLook("kl", _Line.SolidLine),
    "CISPO": LaneLook("reward", _Line.DashLine),
    "SAPO": LaneLook("entropy", _Line.DashLine),
    "LUSPO": LaneLook("kl", _Line.DashLine),
    "VESPO": LaneLook("reward", _Line.DotLine),
    "GMPO": LaneLook("entropy", _Line.DashDotLine),
    "MaxRL": LaneLook("reward", _Line.DashDotLine),
    "REINFORCE++": LaneLook("push_down", _Line.DashDotLine),
    "REINFORCE++ baseline": LaneLook("push_down", _Line.SolidLine),
    "DPPO": LaneLook("kl", _Line.DashDotLine),
}
ANY = LaneLook("reference", _Line.SolidLine)
"""Line style of presets that have none of their own."""
SHORT = {
    "GRPO (DeepSeekMath)": "GRPO",
    "GRPO (TRL 1.16 defaults)": "GRPO (TRL)",
    "GRPO (TRL 1.16 with vLLM)": "GRPO (vLLM)",
    "GRPO (verl 0.9 defaults)": "GRPO (verl)",
}


def look(name: str) -> LaneLook:
    return LOOKS.get(name, ANY)


def short(name: str) -> str:
    return SHORT.get(name, name)
