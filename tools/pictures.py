# ruff: noqa: E402
"""Contact sheets of every panel and of complete windows: theme x scale x empty, mid-run and full, in one process.

python -m tools.pictures [PANEL ...]            sheets into pictures/
python -m tools.pictures language [PANEL ...]   the same for a language model's run
python -m tools.pictures readme                 the README's screenshots into docs/
python -m tools.pictures --language=pseudo      any of these in a longer language (pseudo-rtl: mirrored)
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from tools import pseudo

NAME = next((argument.partition("=")[2] for argument in sys.argv if argument.startswith("--language=")), "")
if NAME:
    pseudo.choose(NAME)  # before the panels are imported, whose constants are translated

from PySide6.QtCore import QEventLoop, QPoint, QRect, Qt, QTimer
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtWidgets import QApplication

from app.application import Application
from app.panel_registry import EVOLUTION, EXPLAIN, PANELS, STEP_DETAIL, TOKEN_INSPECTOR
from app.settings.paths import find_paths
from app.settings.preferences import Preferences
from app.theme.look import Look
from app.training.controller import State
from app.widgets.panel import Panel
from app.widgets.panel_spec import PanelSpec
from grpo_core.config import Settings
from grpo_core.explain import Quantity

OUT = Path("pictures")
THEMES = ("light", "dark", "projector", "contrast")
SCALES = (1.0, 2.0)
MOMENTS = (("empty", 0), ("mid-run", 13), ("full", 200))
LANGUAGE_MOMENTS = (("empty", 0), ("mid-run", 3), ("full", 60))
FILM = ("--updates", "1:4", "--speed", "0.5", "--rate", "12", "--size", "900x420")
"""Options of the film in the README, which keep it below one and a half megabytes."""
NARROW = {STEP_DETAIL.id: (340, 330), EXPLAIN.id: (340, 330)}
"""Panels that are drawn at the width of the window's right side."""
WINDOWS = (
    ("light", 1366, 768, 1.0),
    ("dark", 1366, 768, 1.0),
    ("projector", 1366, 768, 1.25),
    ("light", 1280, 680, 1.0),
    ("dark", 1920, 1080, 1.5),
    ("light", 1366, 768, 2.0),
    ("contrast", 1366, 768, 1.0),
)


def main(wanted: list[str]) -> int:
    """Write the sheets of the given panels, or of all panels and the windows."""
    application = QApplication(sys.argv[:1])
    pseudo.arrange(application, NAME)
    wanted = [name for name in wanted if not name.startswith("--language=")]
    if unknown := set(wanted) - {"readme", "language"} - {spec.id for spec in PANELS}:
        sys.exit(f"Unknown: {', '.join(sorted(unknown))}. The panels are {', '.join(spec.id for spec in PANELS)}.")
    with tempfile.TemporaryDirectory() as home:
        program = Application(application, find_paths({"GRPO_LAB_HOME": home}), Preferences(theme="light", speed=None))
        program.window.show()
        if wanted == ["readme"]:
            readme(program)
        elif wanted[:1] == ["language"]:
            start_language(program)
            sheets(program, wanted[1:], LANGUAGE_MOMENTS, "Language model", "language-")
        else:
            sheets(program, wanted)
        program.controller.finished.connect(application.quit)
        program.shutdown.close()
        while not program.window.may_close:
            settle(20)
    return 0


def start_language(program: Application) -> None:
    """Start a language model's run, and wait until it is loaded."""
    program.runs.new_language_run()
    program.player.set_speed(None)
    while program.controller.state is not State.PAUSED:
        settle(50)


def sheets(
    program: Application,
    wanted: list[str],
    moments: tuple[tuple[str, int], ...] = MOMENTS,
    layout: str = "Bandit",
    prefix: str = "",
) -> None:
    """Write one sheet per panel, then one picture per window and moment."""
    OUT.mkdir(exist_ok=True)
    chosen = [spec for spec in PANELS if not wanted or spec.id in wanted]
    shots: dict[str, list[tuple[str, QImage]]] = {spec.id: [] for spec in chosen}
    for moment, updates in moments:
        go_to(program, updates)
        for theme in THEMES:
            for scale in SCALES:
                program.look.set(theme, scale)
                for spec in chosen:
                    label = f"{theme}, {scale:.0%}, {moment}"
                    shots[spec.id].append((label, panel_picture(program, spec, scale)))
        if not wanted:
            windows(program, prefix + moment, layout)
    for name, images in shots.items():
        looks = len(THEMES) * len(SCALES)
        by_look = [images[moment * looks + look] for look in range(looks) for moment in range(len(moments))]
        sheet(by_look, len(moments)).save(str(OUT / f"{prefix}{name}.png"))
        print(OUT / f"{prefix}{name}.png")


def panel_picture(program: Application, spec: PanelSpec[Panel], scale: float) -> QImage:
    """Return a picture of a separate panel, at its usual size times the scale."""
    panel = spec.make(program.workspace)
    width, height = NARROW.get(spec.id, spec.size)
    panel.resize(round(width * scale), round(height * scale))
    panel.show()
    settle(40)
    while getattr(panel, "busy", False):  # an experiment that began with the first look
        settle(40)
    panel.redraw()
    settle(40)
    image = panel.grab().toImage()
    panel.hide()
    panel.dispose()
    panel.deleteLater()
    return image


def windows(program: Application, moment: str, layout: str) -> None:
    """Write pictures of the complete window in the relevant sizes, themes and scales."""
    for theme, width, height, scale in WINDOWS:
        program.look.set(theme, scale)
        program.window.resize(width, height)
        program.window.show_layout(layout)
        settle(120)
        program.window.show_layout(layout)
        settle(150)
        name = OUT / f"window-{moment}-{theme}-{width}x{height}-{scale:.0%}.png".replace("%", "")
        program.window.grab().save(str(name))
        print(name)


def readme(program: Application) -> None:
    """Write screenshots for the README, kept small."""
    folder = Path("docs")
    folder.mkdir(exist_ok=True)
    look: Look = program.look
    stories: tuple[tuple[str, str, Callable[[], None]], ...] = (
        ("bandit-light", "light", lambda: go_to(program, 13)),
        ("branch-dark", "dark", lambda: branch(program)),
    )
    for name, theme, prepare in stories:
        look.set(theme, 1.0)
        program.window.resize(1366, 768)
        program.window.show_layout("Bandit")
        prepare()
        settle(100)
        program.window.show_layout("Bandit")
        settle(200)
        image = program.window.grab().toImage().convertToFormat(QImage.Format.Format_RGB888)
        image.save(str(folder / f"{name}.png"))
        print(folder / f"{name}.png")
    readme_film(program, folder / "updates.webp")
    readme_language(program, folder)


def readme_film(program: Application, path: Path) -> None:
    """Write a film of the first updates of the default run, drawn by a separate process like the command line's."""
    program.run_manager.new_run(Settings())
    run(program, 4)
    program.controller.commit()
    assert program.workspace.run is not None
    command = [sys.executable, "-m", "app", "film", str(program.workspace.run.path), "--out", str(path), "--force"]
    subprocess.run([*command, *FILM], check=True, stdout=subprocess.DEVNULL)
    print(path)


def readme_language(program: Application, folder: Path) -> None:
    """Write pictures of a language model early in training, with the explanation of a token, and a little later."""
    program.look.set("light", 1.0)
    start_language(program)
    run(program, 3)
    language_window(program, folder / "language-light.png", explained=True)
    program.look.set("dark", 1.0)
    run(program, 18)  # one more update, and the held-out prompts would be evaluated again
    program.window.panels.of(EVOLUTION).place = 1
    language_window(program, folder / "language-dark.png", explained=False)


def explain_selected(program: Application) -> None:
    """Explain the token selected in the token inspector, as pressing a key in it does."""
    grid = program.window.panels.of(TOKEN_INSPECTOR).grid
    grid.setFocus()
    grid.explain_current()


def select_a_fork(program: Application) -> None:
    """Select the first token of the first group whose rewards differ."""
    step = program.workspace.view.step
    assert step.step is not None and step.dead is not None
    group = int((~step.dead).argmax())
    row = int((step.step.group == group).argmax())
    program.workspace.select(row=row, token=0)
    settle(100)


def language_window(program: Application, path: Path, *, explained: bool) -> None:
    """Write a picture of the window in its layout for language models, with or without the explanation of a token."""
    program.window.resize(1440, 860)
    for _ in range(2):
        program.window.show_layout("Language model")
        settle(250)
    select_a_fork(program)
    if explained:
        explain_selected(program)
        settle(250)
    for line in program.messages.lines:  # the message that the run began covers the history
        program.messages.remove(line.message.key)
    settle(100)
    program.window.grab().toImage().convertToFormat(QImage.Format.Format_RGB888).save(str(path))
    print(path)


def branch(program: Application) -> None:
    """Branch at update 10 with another beta and continue."""
    program.workspace.move_to(10)
    program.run_manager.branch(10)
    program.workspace.editing.edit({"objective.beta": 0.3}, "Change beta")
    run(program, 60)
    program.workspace.explain(Quantity("kl"))


def go_to(program: Application, updates: int) -> None:
    """Continue to update ``updates`` and select something there."""
    head = program.workspace.run.head if program.workspace.run else 0
    if updates > head:
        run(program, updates - head)
        program.workspace.select(row=2, action=int(program.workspace.view.step.step.tokens[2, 0]))  # type: ignore[union-attr]
        program.workspace.explain(Quantity("advantage", row=2, token=0))
    settle(60)


def run(program: Application, updates: int) -> None:
    """Run the given number of updates and wait for them."""
    loop = QEventLoop()
    program.player.run_n(updates)
    while program.controller.state is not State.PAUSED:
        QTimer.singleShot(20, loop.quit)
        loop.exec()
    settle(60)


def settle(milliseconds: int) -> None:
    """Let the window draw for the given time."""
    loop = QEventLoop()
    QTimer.singleShot(milliseconds, loop.quit)
    loop.exec()


def sheet(images: list[tuple[str, QImage]], columns: int) -> QImage:
    """Arrange labelled pictures in a grid with ``columns`` columns. Large ones are scaled down by half."""
    smooth = Qt.TransformationMode.SmoothTransformation
    shown = [
        (label, image if image.width() < 900 else image.scaledToWidth(image.width() // 2, smooth))
        for label, image in images
    ]
    rows = [shown[i : i + columns] for i in range(0, len(shown), columns)]
    widths = [max(row[c][1].width() for row in rows) for c in range(columns)]
    heights = [max(image.height() for _, image in row) + 22 for row in rows]
    whole = QImage(sum(widths) + 12 * columns, sum(heights) + 12, QImage.Format.Format_RGB32)
    whole.fill(QColor("#888888"))
    painter = QPainter(whole)
    font = painter.font()
    font.setPixelSize(13)  # the program's own follows the scale drawn last
    painter.setFont(font)
    y = 6
    for row, height in zip(rows, heights, strict=True):
        x = 6
        for (label, image), width in zip(row, widths, strict=True):
            painter.setPen(QColor("white"))
            painter.drawText(QRect(x, y, width, 18), Qt.AlignmentFlag.AlignVCenter, label)
            painter.drawImage(QPoint(x, y + 20), image)
            x += width + 12
        y += height
    painter.end()
    return whole


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
