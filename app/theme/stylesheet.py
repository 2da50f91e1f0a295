"""The stylesheet and the palette of the application, both generated from the tokens."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QDir
from PySide6.QtGui import QPalette

from app.theme.tokens import RADIUS, Theme

GLYPHS = Path(__file__).parent / "glyphs"

_SHEET = """
QToolTip {{ background: {surface}; color: {text}; border: 1px solid {border}; padding: {s4}px {s6}px; }}
QMainWindow::separator {{ background: {border}; width: 1px; height: 1px; }}
QMainWindow::separator:hover {{ background: {accent}; }}
QDockWidget {{ font-size: {small}px; font-weight: 600; color: {muted}; }}
QDockWidget::title {{ background: {ground}; padding: {s6}px {s12}px; text-align: left; }}
QToolBar {{ background: {surface}; border: 0; border-bottom: 1px solid {border}; padding: {s4}px {s12}px;
  spacing: {s8}px; }}
QToolBar[row="true"] {{ background: {ground}; padding: 0; }}
QToolButton#qt_toolbar_ext_button {{ padding: 0; min-width: {s20}px; border: 0; background: {hover}; }}
QTabBar QToolButton {{ padding: 0; border: 0; border-radius: 0; background: {ground}; min-width: 0; }}
QLineEdit#valueField {{ border-color: transparent; padding: {s2}px {s4}px; }}
QLineEdit#valueField:hover, QLineEdit#valueField:focus {{ border-color: {muted}; }}
QMenuBar {{ background: {surface}; }}
QMenuBar::item {{ padding: {s4}px {s8}px; background: transparent; }}
QMenuBar::item:selected, QMenu::item:selected {{ background: {hover}; color: {text}; border-radius: {s4}px; }}
QMenu {{ background: {ground}; border: 1px solid {border}; padding: {s4}px; }}
QMenu::item {{ padding: {s6}px {s24}px {s6}px {s12}px; }}
QMenu::item:disabled {{ color: {dead}; }}
QMenu::separator {{ height: 1px; background: {border}; margin: {s4}px {s8}px; }}

QPushButton, QToolButton {{ background: {ground}; color: {text}; border: 1px solid {border};
  border-radius: {radius}px; padding: {s4}px {s12}px; outline: 0; }}
QFileDialog QToolButton {{ padding: {s4}px; }}
QDialogButtonBox {{ dialogbuttonbox-buttons-have-icons: 0; }}
QPushButton:hover, QToolButton:hover {{ background: {hover}; }}
QPushButton:pressed, QToolButton:pressed {{ background: {border}; }}
QPushButton:focus, QToolButton:focus {{ border: {ring}px solid {selection}; padding: {focus4}px {focus12}px; }}
QPushButton:disabled, QToolButton:disabled {{ color: {dead}; background: {surface}; }}
QPushButton:checked, QToolButton:checked {{ background: {hover}; border-color: {accent}; }}
QPushButton[primary="true"], QToolButton[primary="true"] {{ background: {accent}; color: {on_accent};
  border-color: {accent}; font-weight: 600; }}
QPushButton[primary="true"]:hover, QToolButton[primary="true"]:hover {{ background: {accent_hover}; }}
QPushButton[primary="true"]:focus, QToolButton[primary="true"]:focus {{ border-color: {selection}; }}
QPushButton[primary="true"]:disabled, QToolButton[primary="true"]:disabled {{ background: {surface}; color: {dead};
  border-color: {border}; }}
QPushButton[flat="true"], QToolButton[quiet="true"], QPushButton#door {{ background: transparent;
  border-color: transparent; color: {muted}; padding: {s2}px {s6}px; }}
QPushButton#door {{ color: {accent_ink}; text-align: left; }}
QPushButton[flat="true"]:hover, QToolButton[quiet="true"]:hover, QToolButton[quiet="true"]:checked,
QPushButton#door:hover {{ background: {hover}; color: {text}; }}
QPushButton[flat="true"]:focus, QToolButton[quiet="true"]:focus, QPushButton#door:focus {{
  border-color: {selection}; padding: {focus2}px {focus6}px; }}
QToolButton::menu-indicator {{ image: none; }}

QComboBox, QAbstractSpinBox, QLineEdit, QPlainTextEdit, QTextEdit {{ background: {ground}; color: {text};
  border: 1px solid {border}; border-radius: {radius}px; padding: {s4}px {s8}px;
  selection-background-color: {accent}; selection-color: {on_accent}; }}
QComboBox:hover, QAbstractSpinBox:hover, QLineEdit:hover {{ border-color: {muted}; }}
QComboBox:focus, QAbstractSpinBox:focus, QLineEdit:focus, QPlainTextEdit:focus, QTextEdit:focus {{
  border: {ring}px solid {accent}; }}
QComboBox:disabled, QAbstractSpinBox:disabled, QLineEdit:disabled {{ color: {dead}; background: {surface}; }}
QLineEdit[refused="true"], QAbstractSpinBox[refused="true"] {{ border: 1px dashed {push_down}; }}
QAbstractSpinBox QLineEdit {{ border: 0; padding: 0; background: transparent; }}
QComboBox::drop-down {{ border: 0; width: {s20}px; }}
QComboBox::down-arrow {{ image: url(glyphs:down.svg); width: {s12}px; height: {s12}px; }}
QComboBox QAbstractItemView {{ background: {ground}; border: 1px solid {border}; outline: 0;
  selection-background-color: {hover}; selection-color: {text}; }}
QAbstractSpinBox::up-button, QAbstractSpinBox::down-button {{ border: 0; width: {s16}px; background: transparent; }}
QAbstractSpinBox::up-arrow {{ image: url(glyphs:up.svg); width: {s10}px; height: {s10}px; }}
QAbstractSpinBox::down-arrow {{ image: url(glyphs:down.svg); width: {s10}px; height: {s10}px; }}

QCheckBox {{ spacing: {s8}px; }}
QCheckBox::indicator {{ width: {box}px; height: {box}px; border: 1px solid {muted}; background: {ground};
  border-radius: {s3}px; }}
QCheckBox::indicator:checked {{ background: {accent}; border-color: {accent}; image: url(glyphs:{check}.svg); }}
QCheckBox:focus {{ text-decoration: underline; }}

QSlider {{ min-height: {s20}px; }}
QSlider::groove:horizontal {{ height: {s4}px; background: {border}; border-radius: {s2}px; }}
QSlider::sub-page:horizontal {{ background: {accent}; border-radius: {s2}px; }}
QSlider::handle:horizontal {{ width: {knob}px; height: {knob}px; margin: -{knob_out}px 0;
  border: {ring}px solid {accent}; border-radius: {knob_round}px; background: {ground}; }}
QSlider::handle:horizontal:hover {{ background: {hover}; }}
QSlider::handle:horizontal:focus {{ border-color: {selection}; }}
QSlider::sub-page:horizontal:disabled {{ background: {dead}; }}
QSlider::handle:horizontal:disabled {{ border-color: {dead}; }}

QTabBar {{ background: {ground}; qproperty-drawBase: 0; }}
QTabBar::tab {{ background: transparent; color: {muted}; border: 0; border-bottom: {s2}px solid transparent;
  padding: {s6}px {s2}px {s4}px {s2}px; margin: 0 {s6}px; }}
QTabBar::tab:selected {{ color: {text}; border-bottom-color: {accent}; }}
QTabBar::tab:hover {{ color: {text}; }}
QTabBar::tab:focus {{ border-bottom-color: {selection}; }}
QTabBar::tear {{ width: 0; border: 0; image: none; }}

QScrollBar {{ background: transparent; border: 0; }}
QAbstractScrollArea::corner {{ background: transparent; border: 0; }}
QScrollBar:vertical {{ width: {s10}px; }}
QScrollBar:horizontal {{ height: {s10}px; }}
QScrollBar::handle {{ background: {border}; border-radius: {s3}px; margin: {s2}px; }}
QScrollBar::handle:vertical {{ min-height: {s24}px; }}
QScrollBar::handle:horizontal {{ min-width: {s24}px; }}
QScrollBar::handle:hover {{ background: {dead}; }}
QScrollBar::add-line, QScrollBar::sub-line {{ width: 0; height: 0; }}
QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}

QAbstractItemView {{ outline: 0; border: 0; background: {ground}; alternate-background-color: {surface}; }}
QHeaderView {{ background: {ground}; border: 0; }}
QHeaderView::section {{ background: {ground}; color: {muted}; border: 0; border-bottom: 1px solid {border};
  padding: {s4}px {s6}px; font-size: {small}px; font-weight: 400; }}
QHeaderView::section:hover {{ color: {text}; }}
QHeaderView::up-arrow {{ image: url(glyphs:up.svg); width: {s8}px; height: {s8}px; }}
QHeaderView::down-arrow {{ image: url(glyphs:down.svg); width: {s8}px; height: {s8}px; }}
QProgressBar {{ border: 0; border-radius: {s2}px; background: {border}; max-height: {s4}px; text-align: center; }}
QProgressBar::chunk {{ background: {accent}; border-radius: {s2}px; }}
QPushButton#chip {{ border-radius: {s10}px; padding: {s2}px {s8}px; }}
QPushButton#chip:focus {{ padding: {focus2}px {focus8}px; }}
QPushButton#chip:checked {{ background: {text}; border-color: {text}; color: {ground}; }}
QFrame#messages, QToolButton#messageMark {{ background: {ground}; border: 1px solid {muted}; border-radius: 0; }}
QFrame#strip {{ background: {surface}; border: 0; border-bottom: 1px solid {border}; }}
QFrame#finding {{ background: {ground}; border: 1px solid {border}; border-radius: {radius}px; }}
QLabel#section {{ font-size: {small}px; font-weight: 600; color: {muted}; }}
QLabel#muted {{ color: {muted}; }}
QLabel#explained, QLabel#number {{ font-size: {number}px; font-weight: 600; }}
QLabel#agrees {{ color: {agree_ink}; }}
QLabel#disagrees, QLabel#refusal {{ color: {wrong_ink}; }}
"""


def stylesheet(theme: Theme, scale: float) -> str:
    """Return the application's stylesheet for ``theme`` at ``scale``."""
    lengths = {f"s{n}": max(round(n * scale), 1) for n in (2, 3, 4, 6, 8, 10, 12, 16, 20, 24)}
    # The knob is centred on its groove only if it protrudes by a whole number of pixels on both sides.
    out, ring = round(3 * scale), round(theme.ring_width)
    knob = lengths["s4"] + 2 * out
    # The width that the focus ring adds to the border is subtracted from the padding, so that a focused button does not
    # push its neighbours.
    lengths |= {f"focus{n}": max(lengths[f"s{n}"] - (ring - 1), 0) for n in (2, 4, 6, 8, 12)}
    sizes = {
        "radius": round(RADIUS * scale),
        "small": theme.font("small", scale).pixelSize(),
        "number": theme.font("number", scale).pixelSize(),
        "ring": ring,
        "knob": knob,
        "box": lengths["s6"] + 2 * lengths["s4"] - 2,
        "knob_out": out + ring,
        "knob_round": knob // 2 + ring,
    }
    # A separate search path, because a path with non-ASCII characters makes Qt reject the entire stylesheet.
    QDir.setSearchPaths("glyphs", [str(GLYPHS)])
    check = "check-dark" if theme.dark else "check-light"
    names = ("ground", "surface", "border", "text", "muted", "accent", "selection", "dead", "push_down")
    colours = {name: theme.hex(name) for name in names} | {
        "hover": theme.faint("text", 0.07).name(),
        "on_accent": theme.on(theme.colour("accent")).name(),
        "accent_hover": theme.faint("accent", 0.88).name(),
        "accent_ink": theme.ink("accent").name(),
        "agree_ink": theme.ink("entropy").name(),
        "wrong_ink": theme.ink("push_down").name(),
    }
    return _SHEET.format(**lengths, **sizes, **colours, check=check)


def palette(theme: Theme) -> QPalette:
    """Return ``theme`` as a palette, for everything that the stylesheet leaves to the Fusion style."""
    role, found = QPalette.ColorRole, QPalette()
    accent = theme.colour("accent")
    chosen = {
        role.Window: "ground", role.Base: "ground", role.AlternateBase: "surface", role.Button: "surface",
        role.WindowText: "text", role.Text: "text", role.ButtonText: "text", role.BrightText: "text",
        role.ToolTipBase: "surface", role.ToolTipText: "text", role.PlaceholderText: "muted", role.Mid: "border",
        role.Midlight: "border", role.Dark: "muted", role.Light: "surface", role.Shadow: "border",
        role.Highlight: "accent", role.Accent: "accent",
    }  # fmt: skip # table, one row per line
    for name, meaning in chosen.items():
        found.setColor(name, theme.colour(meaning))
    found.setColor(role.HighlightedText, theme.on(accent))
    found.setColor(role.Link, theme.ink("accent"))
    found.setColor(role.LinkVisited, theme.ink("accent"))
    for name in (role.WindowText, role.Text, role.ButtonText):
        found.setColor(QPalette.ColorGroup.Disabled, name, theme.colour("dead"))
    return found
