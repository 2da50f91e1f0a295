"""One recorded update under other settings or a preset, side by side with the original.

The batch is kept: completions, rewards and the policy before the update are the recorded ones. Everything derived from
them is computed by the training functions. ``replay.py`` creates the alternative record, ``compare.py`` the table, and
``sentences.py`` the explanation of what does not change, and why.
"""

from grpo_core.what_if.compare import Compared, Direction, WhatIf, compared, direction, side_by_side, what_if
from grpo_core.what_if.replay import Difference, differences, in_force, replayed
from grpo_core.what_if.sentences import notes, unchanged

__all__ = [
    "Compared", "Difference", "Direction", "WhatIf", "compared", "differences", "direction", "in_force",
    "notes", "replayed", "side_by_side", "unchanged", "what_if",
]  # fmt: skip # names, several per line
