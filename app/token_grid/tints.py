"""Tints of tokens: quantities of the update shown, each on a fixed scale, and the labelled scale under the grid."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QColor, QFontMetricsF, QLinearGradient, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.plotting.numbers import shown
from app.theme.labels import plain_tip
from app.theme.painted_text import Sourced
from app.theme.painting import frame, painter_of
from app.theme.tokens import Theme
from app.workspace.step_view import StepView
from grpo_core import recompute
from grpo_core.deviations import DEVIATIONS
from grpo_core.recompute import USUAL_CAP
from grpo_core.surrogates import SURROGATES
from grpo_core.text import tr


@dataclass(frozen=True, kw_only=True)
class Tint:
    """A quantity of every token, and how its tint is scaled and labelled.

    Attributes:
        quantity: name of the number for the explanation.
        values: (B, T), None if the record lacks it.
        limit: the value of full tint; it depends on settings, not on the update, so that colours are comparable.
        signed: whether negative values have a separate colour.
        low, high: labels of the ends of the scale.
        absent: the sentence shown if there are no values.
    """

    title: str
    help: str
    quantity: str
    values: Callable[[StepView], np.ndarray | None]
    limit: Callable[[StepView], float]
    signed: bool = True
    low: str = "less"
    high: str = "more"
    absent: str = tr("not recorded in this run")


def strength(share: float) -> float:
    """Return the strength of a tint, from 0 to 1: the square root of ``share``, a value as a fraction of the limit.

    On a linear scale, a token that moves by a tenth of the limit, as many do, would hardly be visible.
    """
    return math.sqrt(min(abs(share), 1.0))


def largest_advantage(view: StepView) -> float:
    """Return the largest advantage possible in a group of this size.

    It is (G − 1)/√G if the standard deviation divides by n − 1, √(G − 1) if it divides by n, G − 1 if the mean divides
    (rewards of 0 or 1), and otherwise 1.
    """
    group = max(view.settings.learner.group_size, 2)
    deviation = DEVIATIONS[view.objective.std]
    if deviation.of_mean:
        return group - 1.0
    if not deviation.of_group:
        return 1.0
    return (group - 1) / math.sqrt(group) if deviation.ddof else math.sqrt(group - 1)


def _push_limit(view: StepView) -> float:
    weight = 0.0 if view.terms is None else float(view.terms.weight.max(initial=0.0))
    return max(largest_advantage(view) * weight, 1e-12)


def _log_probability(view: StepView) -> np.ndarray | None:
    return None if view.step is None else np.where(view.step.mask, view.step.logp[view.passed], 0.0)


def _fork(view: StepView) -> np.ndarray | None:
    here = _log_probability(view)
    return None if view.gradient is None or here is None else -view.gradient * -np.expm1(here)


def _change(view: StepView) -> np.ndarray | None:
    if view.step is None or view.logp_after is None:
        return None
    return np.where(view.step.mask, view.logp_after - view.step.old_logp, 0.0)


def _ratio_limit(view: StepView) -> float:
    """Return the distance from log r = 0 to the nearer edge of the clip range, or log 2 if nothing is clipped."""
    clip = SURROGATES[view.objective.surrogate].clip
    if clip is None:
        return math.log(2)
    low, high = clip.band(view.objective)
    return min(-math.log(low), math.log(high)) if 0 < low < 1 < high else math.log(2)


def _weight_limit(view: StepView) -> float:
    """Return three times the average weight of a token."""
    if view.terms is None or view.step is None:
        return 1.0
    return max(3 * float(view.terms.weight.sum()) / max(int(view.step.mask.sum()), 1), 1e-12)


def _importance(view: StepView) -> np.ndarray | None:
    weights = None if view.step is None else recompute.importance_weights(view.step)
    return None if weights is None else np.log(np.maximum(weights, 0.01))  # a masked one is 0


def _cap(view: StepView) -> float:
    """Return the limit of the importance tint: log C for the cap C, but at least log 1.1."""
    cap = view.objective.importance_cap
    return max(math.log(USUAL_CAP if cap is None else cap), math.log(1.1))


TINTS: dict[str, Tint] = {
    "fork": Tint(title=tr("Push on the choice"), quantity="gradient", values=_fork, limit=_push_limit,
        low=tr("push down"), high=tr("push up"),
        help=tr("Push on log π times 1 − π: how far this token's own logit is moved.")),
    "push": Tint(title=tr("Push on log π"), quantity="gradient",
        values=lambda view: None if view.gradient is None else -view.gradient, limit=_push_limit, low=tr("push down"),
        high=tr("push up"),
        help=tr("−∂loss/∂log π of the token in this pass.")),
    "change": Tint(title=tr("Change of log π"), quantity="log_ratio", values=_change, limit=lambda view: 1.0,
        low=tr("less likely"), high=tr("more likely"),
        help=tr("log π after the pass shown minus before the update.")),
    "token_loss": Tint(title=tr("Token loss"), quantity="token_loss",
        values=lambda view: None if view.terms is None else view.terms.token_loss, limit=largest_advantage,
        low=tr("negative"), high=tr("positive"),
        help=tr("The token's own term, before its weight.")),
    "ratio": Tint(title=tr("Ratio"), quantity="ratio",
        values=lambda view: None if view.terms is None else np.log(view.terms.ratio), limit=_ratio_limit,
        low=tr("r below 1"), high=tr("r above 1"),
        help=tr("log of π / π_old; full tint is the edge of the clip, or a factor of two without one.")),
    "kl": Tint(title=tr("KL estimate"), quantity="kl",
        values=lambda view: None if view.terms is None else view.terms.kl, limit=lambda view: 1.0, signed=False,
        low="0", high=tr("1 nat"),
        help=tr("The token's KL estimate from the reference policy, in nats.")),
    "weight": Tint(title=tr("Weight in the mean"), quantity="weight",
        values=lambda view: None if view.terms is None else view.terms.weight, limit=_weight_limit, signed=False,
        low="0", high=tr("3 × an even share"),
        help=tr("How much one token counts in the loss; full tint: three times an even share.")),
    "entropy": Tint(title=tr("Entropy"), quantity="entropy",
        values=lambda view: None if view.step is None else recompute.exact_entropy(view.step, view.passed),
        limit=lambda view: math.log(max(len(view.origin.vocabulary), 2)), signed=False, low=tr("certain"),
        high=tr("uniform"), absent=tr("recorded before the first pass and after the last"),
        help=tr("Entropy of the policy at the token's place, in nats.")),
    "sampler": Tint(title=tr("Sampler"), quantity="sampling_logp",
        values=lambda view: None if view.step is None else recompute.from_sampler(view.step),
        limit=lambda view: math.log(2), low=tr("less than sampled"), high=tr("more than sampled"),
        help=tr(
            "log π before the update less the sampler's; full tint: their probabilities differ by a factor of two."
        )),
    "importance": Tint(title=tr("Importance weight"), quantity="sampling_logp", values=_importance, limit=_cap,
        low=tr("weighs less"), high=tr("weighs more"),
        help=tr(
            "log of min(π_old / π_sampler, C), by which a truncated importance ratio multiplies the push. "
            "C is the loss's cap, or 2 if it has none. Full tint: the cap."
        )),
    "logp": Tint(title=tr("Log-probability"), quantity="logp", values=_log_probability, limit=lambda view: 5.0,
        low=tr("unlikely"), high=tr("certain"),
        help=tr("Log-probability of the token before the pass shown, in nats.")),
    "advantage": Tint(title=tr("Advantage"), quantity="advantage",
        values=lambda view: None if view.numbers is None else view.numbers.token_advantage, limit=largest_advantage,
        low=tr("worse"), high=tr("better"),
        help=tr("The advantage of the token: its own, or that of its completion.")),
}  # fmt: skip # table, a few lines per row
DEFAULT = "fork"
OF_OVERVIEW = (
    "push", "kl", "entropy", "ratio", "change", "token_loss", "sampler", "importance", "logp", "advantage",
)  # fmt: skip # short names, side by side
OVERVIEW: dict[str, Tint] = {
    **{name: TINTS[name] for name in OF_OVERVIEW},
    "clipped": Tint(title=tr("Clipped"), quantity="clipped",
        values=lambda view: None if view.terms is None else view.terms.clipped.astype(float), limit=lambda view: 1.0,
        signed=False, low=tr("pushed"), high=tr("clipped"),
        help=tr("Whether the clip stopped the push on the token.")),
    "left_out": Tint(title=tr("Not in the loss"), quantity="weight",
        values=lambda view: None if view.step is None else (view.step.there & ~view.step.mask).astype(float),
        limit=lambda view: 1.0, signed=False, low=tr("counts"), high=tr("does not count"),
        help=tr("Tokens that do not count in the loss, such as the result of a tool.")),
}  # fmt: skip # table, a few lines per row
"""The tints of the overview of all tokens."""


STOPS = 24
"""Number of colour stops of the scale. Qt interpolates between them."""
GAP, SHORT, LEAST = 8.0, 48.0, 24.0
"""Pixels: gap between the parts, minimum width of the scale at which labels fit next to it, and its minimum width."""


class TintLegend(Sourced, QWidget):
    """A labelled colour scale. It shows as many of the labels as fit; its accessible name has all."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # in any language
        self._theme: Theme | None = None
        self._text = ("", "", "")
        self._extents = [""]
        self._signed = True
        self._scale = 1.0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        font = self.font() if self._theme is None else self._theme.font("digits", self._scale)
        return QSize(200, round(QFontMetricsF(font).height() * 1.4))

    def minimumSizeHint(self) -> QSize:
        return QSize(0, self.sizeHint().height())

    def show_scale(
        self,
        theme: Theme,
        scale: float,
        tint: Tint,
        limit: float,
        known: bool,
        *,
        hatched: bool = True,
        left_out: bool = False,
    ) -> None:
        """Show the meaning of the ends of ``tint``.

        Args:
            limit: the value of full tint.
            known: False if the record lacks the quantity.
            hatched: clipped tokens are hatched.
            left_out: tokens that do not count in the loss are underlined.
        """
        self._theme, self._scale, self._signed = theme, scale, tint.signed
        number = shown(limit)
        extent = (tr("fixed √ scale ±{limit}") if tint.signed else tr("fixed √ scale 0 to {limit}")).format(
            limit=number
        )
        self._text = (tint.low, tint.high, extent if known else tint.absent)
        short = (tr("±{limit}") if tint.signed else tr("0 to {limit}")).format(limit=number)
        marks = [*[tr("underlined: not in the loss")] * left_out, *[tr("hatched: clipped")] * hatched]
        marked = ["    ".join((extent, *marks[:count])) for count in range(len(marks), -1, -1)]
        self._extents = [*marked, short] if known else [tint.absent]
        self.setAccessibleName(tr("Scale of {title}: {text}").format(title=tint.title, text=", ".join(self._text)))
        self.setToolTip(plain_tip(f"{tint.help}\n{self._extents[0]}"))
        self.updateGeometry()
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._theme is None:
            return
        theme, painter = self._theme, painter_of(self)
        painter.setFont(theme.font("digits", self._scale))
        metrics = painter.fontMetrics()
        low, high = (f"▼ {self._text[0]}", f"{self._text[1]} ▲") if self._signed else self._text[:2]
        height = self.height()
        space = self.width() - metrics.horizontalAdvance(low) - metrics.horizontalAdvance(high) - 5 * GAP
        extent = next((text for text in self._extents if metrics.horizontalAdvance(text) <= space - SHORT), "")
        x = self._word(painter, GAP, low)
        wide = min(max(self.width() * 0.25, SHORT), 180.0, max(space - metrics.horizontalAdvance(extent), LEAST))
        bar = QRectF(x, height * 0.28, wide, height * 0.44)
        gradient = QLinearGradient(bar.topLeft(), bar.topRight())
        for stop in range(STOPS + 1):
            share = 2 * stop / STOPS - 1 if self._signed else stop / STOPS
            tint = QColor(theme.colour("push_up" if share >= 0 else "push_down"))
            tint.setAlphaF(0.06 + 0.74 * strength(share))
            gradient.setColorAt(stop / STOPS, tint)
        frame(painter, bar, None, QBrush(gradient), radius=3)
        if self._signed:
            painter.setPen(QPen(theme.colour("push_down"), 2, Qt.PenStyle.DashLine))
            painter.drawLine(QPointF(bar.left() + 2, bar.bottom()), QPointF(bar.center().x() - 4, bar.bottom()))
            painter.setPen(QPen(theme.colour("push_up"), 2))
            painter.drawLine(QPointF(bar.center().x() + 4, bar.top()), QPointF(bar.right() - 2, bar.top()))
        x = self._word(painter, bar.right() + GAP, high) + GAP
        painter.drawText(QPointF(x, self._base(painter)), extent)

    def _base(self, painter: QPainter) -> float:
        metrics = painter.fontMetrics()
        return (self.height() + metrics.ascent() - metrics.descent()) / 2

    def _word(self, painter: QPainter, x: float, text: str) -> float:
        assert self._theme is not None
        painter.setPen(self._theme.colour("muted"))
        painter.drawText(QPointF(x, self._base(painter)), text)
        return x + painter.fontMetrics().horizontalAdvance(text) + GAP
