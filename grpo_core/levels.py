"""Levels of the importance ratio: one ratio per token, or one per completion.

=============  ====================================  ===========================================
level          ratio                                 source
=============  ====================================  ===========================================
token          exp(log r_t)                          PPO, arXiv:1707.06347, section 3
sequence       exp((1 / L) Σ_t log r_t)              GSPO, arXiv:2507.18071, equation 7
sequence_sum   exp(Σ_t log r_t)                      RLOO, arXiv:2402.14740
=============  ====================================  ===========================================

with log r_t = log π − log π_old of token t and L the completion's number of tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

from grpo_core.arrays import Array
from grpo_core.text import tr


@dataclass(frozen=True, kw_only=True)
class Level:
    """A level of the importance ratio: whether and how tokens share one.

    Attributes:
        of_completion: whether all tokens of a completion share one ratio; otherwise each has its own.
        by_length: whether the shared log-ratio is the mean over the tokens; otherwise it is the sum.
        inline: the ratio as symbols in a one-line formula.
        note: one sentence describing the ratio; empty for per-token ratios.
        script_note: short description of the ratio, for a comment in an exported script.
    """

    of_completion: bool
    by_length: bool
    inline: str
    note: str
    script_note: str
    source: str

    def combined(self, xp: Array, per_token: Array, length: Array | float) -> Array:
        """Combine per-token log-ratios into log-ratios at this level. The same linear map carries a gradient back to
        the tokens.

        Args:
            per_token: (..., B, T), 0 in padding.
            length: at least 1, (..., B, 1), or one number that all completions share.

        Returns:
            (..., B, T) for per-token ratios, (..., B, 1) for per-completion ones.
        """
        if not self.of_completion:
            return per_token
        total = xp.sum(per_token, axis=-1, keepdims=True)
        return total / length if self.by_length else total


LEVELS: dict[str, Level] = {
    "token": Level(
        of_completion=False,
        by_length=False,
        inline=r"\pi/\pi_{\mathrm{old}}",
        note="",
        script_note="probability now divided by that under the old policy",
        source="PPO, arXiv:1707.06347, section 3; DeepSeekMath, arXiv:2402.03300, equation 3",
    ),
    "sequence": Level(
        of_completion=True,
        by_length=True,
        inline=r"(\Pi_{t}\,\pi/\pi_{\mathrm{old}})^{1/L}",
        note=tr("The whole completion has one ratio: the geometric mean of its tokens' ratios."),
        script_note="one for the completion: the geometric mean of its tokens'",
        source="GSPO, arXiv:2507.18071, equation 7",
    ),
    "sequence_sum": Level(
        of_completion=True,
        by_length=False,
        inline=r"\Pi_{t}\,\pi/\pi_{\mathrm{old}}",
        note=tr("The whole completion has one ratio: the product of its tokens' ratios."),
        script_note="one for the completion: the product of its tokens'",
        source="RLOO, arXiv:2402.14740",
    ),
}
"""Levels by name in the settings."""
