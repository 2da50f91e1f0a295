"""The appearance of the entire program: theme, scale, fonts. It can follow the system."""

from __future__ import annotations

import dataclasses

from PySide6.QtCore import QEvent, QObject, Qt, Signal, Slot
from PySide6.QtWidgets import QApplication

from app.resources import load_fonts
from app.theme.stylesheet import palette, stylesheet
from app.theme.tokens import CONTRAST, DARK, LIGHT, THEMES, Theme
from grpo_core.text import tr

TITLES = {
    "system": tr("System"),
    "light": tr("Light"),
    "dark": tr("Dark"),
    "projector": tr("Projector"),
    "contrast": tr("High contrast"),
}
"""The available themes: stored name -> displayed name."""
CHOICES = tuple(TITLES)
SCALES = (0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 1.75, 2.0, 2.5)
"""Scales that Ctrl + and Ctrl - step through."""
FUSION = "fusion_is_set"
"""Property of the application that says whether the Fusion style is set."""


def choose(app: QApplication, choice: str) -> Theme:
    """Return the theme that ``choice`` currently means.

    "system" follows the system's contrast setting first, then its colour scheme, and otherwise means light.

    Raises:
        ValueError: ``choice`` is not in ``CHOICES``.
    """
    if choice == "system":
        if _high_contrast(app):
            return CONTRAST
        return DARK if app.styleHints().colorScheme() is Qt.ColorScheme.Dark else LIGHT
    if choice not in THEMES:
        raise ValueError(f"“{choice}” is not a theme: choose one of {', '.join(CHOICES)}.")
    return THEMES[choice]


def _high_contrast(app: QApplication) -> bool:
    """Return whether the system requests high contrast. PySide6 6.11 can lose the object that provides this."""
    hints = app.styleHints()
    try:
        return hints.accessibility().contrastPreference() is Qt.ContrastPreference.HighContrast
    except RuntimeError:
        return False


def apply(
    app: QApplication, choice: str = "system", scale: float = 1.0, *, legible: int = 0, sheet: bool = True
) -> Theme:
    """Apply a theme to the application, and return it with its font families filled in.

    This sets the Fusion style, the palette, the fonts and, with ``sheet``, one stylesheet. Plots and painted widgets
    use the theme and the scale directly.
    """
    hints = app.styleHints()
    if choice == "system":
        hints.unsetColorScheme()
    theme = choose(app, choice)
    if choice != "system":
        hints.setColorScheme(Qt.ColorScheme.Dark if theme.dark else Qt.ColorScheme.Light)
    sans, mono = load_fonts()
    theme = dataclasses.replace(theme, sans=sans, mono=mono, legible=legible)
    scale = clamp(scale)
    # under a stylesheet the style no longer reports its own name, and setting it is expensive
    if not app.property(FUSION):
        app.setStyle("Fusion")
        app.setProperty(FUSION, True)
    app.setPalette(palette(theme))
    app.setFont(theme.font("body", scale))
    _put_on(app, stylesheet(theme, scale) if sheet else "")
    return theme


def _put_on(app: QApplication, sheet: str) -> None:
    """Set the stylesheet of the application, unless it is already set.

    An old stylesheet is removed before the new one is set, because both steps together take half as long as replacing
    it: 0.1 s instead of 0.2 s with 900 widgets.
    """
    if app.styleSheet() == sheet:
        return
    if app.styleSheet() and sheet:
        app.setStyleSheet("")
    app.setStyleSheet(sheet)
    if sheet:
        put_font_on_all(app)


def put_font_on_all(app: QApplication) -> None:
    """Give the application's font to widgets that have a system font.

    When a stylesheet is set for the first time, Qt queries the system's fonts for menus, lists and messages again;
    such fonts exist on Windows and macOS.
    """
    font = app.font()
    kinds = ("QMenuBar", "QAbstractItemView")
    if all(app.font(kind) == font for kind in kinds):  # type: ignore[call-overload]  # PySide6 takes str and says bytes
        return
    app.setFont(font)  # resets the fonts by widget class, and notifies existing widgets
    for widget in app.allWidgets():
        app.sendEvent(widget, QEvent(QEvent.Type.ApplicationFontChange))


def clamp(scale: float) -> float:
    return min(max(scale, SCALES[0]), SCALES[-1])


class Look(QObject):
    """Applies the user's choice of appearance. The stylesheet is set only by :meth:`apply_style`.

    Attributes:
        choice: one of ``CHOICES``.
        theme: the theme that it currently means.
        scale: 0.8 to 2.5.
        legible: minimum size in pixels of words and digits within pictures.

    Signals:
        changed: theme or scale has changed.
    """

    changed = Signal()

    def __init__(
        self, app: QApplication, choice: str = "system", scale: float = 1.0, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._app = app
        self.choice, self.scale, self.legible = choice, clamp(scale), 0
        self.theme = apply(app, self.choice, self.scale, sheet=False)
        app.styleHints().colorSchemeChanged.connect(self._on_scheme)

    def apply_style(self) -> None:
        """Set the stylesheet.

        Call this once the window is built, because afterwards every reparented widget is styled again.
        """
        _put_on(self._app, stylesheet(self.theme, self.scale))

    def set(self, choice: str | None = None, scale: float | None = None, *, legible: int | None = None) -> None:
        wanted = (
            self.choice if choice is None else choice,
            self.scale if scale is None else clamp(scale),
            self.legible if legible is None else legible,
        )
        if wanted == (self.choice, self.scale, self.legible):
            return
        choose(self._app, wanted[0])
        self.choice, self.scale, self.legible = wanted
        self._apply()

    def zoom(self, steps: int) -> None:
        """Enlarge (+1) or reduce (-1) by one step of ``SCALES``. 0 returns to 100 %."""
        nearest = min(range(len(SCALES)), key=lambda i: abs(SCALES[i] - self.scale))
        self.set(scale=SCALES[min(max(nearest + steps, 0), len(SCALES) - 1)] if steps else 1.0)

    def _apply(self) -> None:
        self.theme = apply(self._app, self.choice, self.scale, legible=self.legible)
        self.changed.emit()

    @Slot()
    def _on_scheme(self) -> None:
        if self.choice == "system" and choose(self._app, "system").name != self.theme.name:
            self._apply()
