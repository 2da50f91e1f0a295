"""Reductions, which average token losses: W, the weight of one token in the loss Σ W ℓ.

============  ==================  =========================================
reduction     W                   source
============  ==================  =========================================
sequence      1 / (L_i B)         DeepSeekMath, arXiv:2402.03300, eq. 3
token         1 / Σ L             DAPO, arXiv:2503.14476, equation 8
constant      1 / (B L_max)       Dr. GRPO, arXiv:2503.20783
sequence_sum  1 / B               after Williams 1992; LUSPO, arXiv:2602.05261
============  ==================  =========================================

with L_i the number of tokens of completion i and B the number of completions, including fully masked ones. A trainer's
own denominator can be given instead of B or the token count.
"""

from __future__ import annotations

from dataclasses import dataclass

from grpo_core.arrays import Array, at_least_one
from grpo_core.text import tr


@dataclass(frozen=True, kw_only=True)
class Reduction:
    """A way to average token losses.

    Attributes:
        counts_tokens: whether its default denominator is the number of tokens rather than that of completions.
        by_length: whether a token is also divided by the length of its completion.
        by_constant: whether a token is also divided by ``max_tokens``.
        latex: W as symbols, with N as the denominator.
        inline: W as symbols in a one-line formula, with B the number of completions and T the number of all tokens.
        note: one sentence on its effect on long and short completions.
        phrase: the reduction as part of a sentence.
        source: paper and equation; with one mean ratio per completion, ``source_of_mean_ratio`` if that is not empty.
        knobs: fields of the objective that have an effect only with it.
    """

    counts_tokens: bool = False
    by_length: bool = False
    by_constant: bool = False
    latex: str
    inline: str
    note: str
    phrase: str
    source: str
    source_of_mean_ratio: str = ""
    knobs: tuple[str, ...] = ()

    def denominator(self, completions: int, tokens: Array | float) -> Array | float:
        """Return the default denominator: the number of completions or of tokens, at least 1."""
        return at_least_one(tokens) if self.counts_tokens else float(completions)

    def weight(
        self,
        real: Array | float,
        length: Array | float,
        denominator: Array | float,
        max_tokens: Array | float | None,
    ) -> Array | float:
        """Return W (..., B, T), 0 in padding, or a single number if all tokens have the same weight.

        Args:
            real: 1 for a token and 0 in padding, (..., B, T); 1 if nothing is padded.
            length: tokens of each completion, (..., B, 1), or one number for all.
            denominator: replaces B or the token count; a number or (..., 1, 1).
            max_tokens: the constant length of "constant".
        """
        if self.by_length:
            return real / (length * denominator)
        if self.by_constant:
            assert max_tokens is not None
            return real / (denominator * max_tokens)
        return real / denominator

    def script(self, count: str) -> str:
        """Return W as a NumPy expression, with ``count`` as the denominator."""
        if self.by_length:
            return f"MASK / (L * {count})"
        return f"MASK / ({count} * MAX_TOKENS)" if self.by_constant else f"MASK / {count}"


REDUCTIONS: dict[str, Reduction] = {
    "sequence": Reduction(
        by_length=True,
        latex=r"\frac{1}{L_{i} N}",
        inline=r"1/(L_{i} B)",
        note=tr(
            "Each completion counts the same: its tokens share one part of N, so a token of a long completion "
            "counts less."
        ),
        phrase=tr("a mean per completion, then over completions"),
        source="DeepSeekMath, arXiv:2402.03300, equation 3",
    ),
    "token": Reduction(
        counts_tokens=True,
        latex=r"\frac{1}{N}",
        inline=r"1/T",
        note=tr("Each token counts the same, so long completions weigh more."),
        phrase=tr("one mean over all tokens"),
        source=tr("after DAPO, arXiv:2503.14476, equation 8, over the whole batch as in its code"),
    ),
    "constant": Reduction(
        by_constant=True,
        latex=r"\frac{1}{N L_{\max}}",
        inline=r"1/(L_{\max} B)",
        note=tr("Each token counts the same, and the constant does not depend on the sampled lengths."),
        phrase=tr("a sum over a constant length"),
        source="Dr. GRPO, arXiv:2503.20783",
        knobs=("max_tokens",),
    ),
    "sequence_sum": Reduction(
        latex=r"\frac{1}{N}",
        inline=r"1/B",
        note=tr("The tokens of a completion are summed, so long completions weigh more."),
        phrase=tr("a sum per completion, then a mean"),
        source=tr("after Williams 1992: log π of a completion is the sum over its tokens"),
        source_of_mean_ratio=tr("after LUSPO, arXiv:2602.05261, as TRL 1.16 computes it"),
    ),
}
"""Reductions by name in the settings."""
