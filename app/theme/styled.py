"""Widgets that are drawn in a theme and at a scale, which their owner sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QWidget

from app.theme.tokens import LIGHT, Theme

if TYPE_CHECKING:
    Base = QWidget
else:
    Base = object


class Styled(Base):
    """A widget with a look: a base class before that of Qt.

    Attributes:
        factor: the scale; 1 is 100 %.
    """

    theme: Theme = LIGHT
    factor: float = 1.0

    def set_look(self, theme: Theme, scale: float) -> None:
        if (theme, scale) != (self.theme, self.factor):
            self.theme, self.factor = theme, scale
            self._apply_style()

    def _apply_style(self) -> None:
        """Adopt a look that has changed."""
        self.updateGeometry()
        self.update()
