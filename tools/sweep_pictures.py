"""Write a sheet of the panel “KL over β” in each of its views: theme x scale.

python -m tools.sweep_pictures        writes pictures/kl_over_beta_views.png
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable

from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication

from app.application import Application
from app.experiments.sweep.plan import BETA, ESTIMATOR, Swept
from app.experiments.sweep.views import FINAL, FRONTIER, HEAT, SIDE, TRAINING
from app.panel_registry import KL_OVER_BETA
from app.settings.paths import find_paths
from app.settings.preferences import Preferences
from tools.pictures import OUT, run, settle, sheet

BETAS, ESTIMATORS, RATES = Swept.of(BETA), Swept.of(ESTIMATOR), Swept.of("optimizer.learning_rate")
CHOICES: dict[str, tuple[str, dict[str, object]]] = {
    "GRPO": (FINAL, {}),
    "theory": (FINAL, {"known": True}),
    "training": (TRAINING, {}),
    "frontier": (FRONTIER, {"known": True}),
    "estimators": (FINAL, {"across": ESTIMATORS}),
    "side by side": (SIDE, {"across": ESTIMATORS, "known": True}),
    "two settings": (HEAT, {"across": RATES}),
    "group size": (FINAL, {"over": Swept.of("learner.group_size")}),
    "as far as it got": (FINAL, {"over": Swept(path="learner.group_size", values=(2, 4, 512))}),
}
LOOKS = (("light", 1.0), ("dark", 1.0), ("projector", 1.0), ("dark", 2.0))


def main() -> int:
    """Write the sheet."""
    application = QApplication(sys.argv[:1])
    OUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        program = Application(application, find_paths({"GRPO_LAB_HOME": home}), Preferences(theme="light", speed=None))
        program.window.show()
        run(program, 40)
        images = [
            (f"{name}, {theme}, {scale:.0%}", picture(program, name, theme, scale))
            for name in CHOICES
            for theme, scale in LOOKS
        ]
        path = OUT / "kl_over_beta_views.png"
        sheet(images, len(LOOKS)).save(str(path))
        print(path)
        program.controller.finished.connect(application.quit)
        program.shutdown.close()
        settle(200)
    return 0


def picture(program: Application, name: str, theme: str, scale: float) -> QImage:
    """Return a picture of the panel with one option selected."""
    program.look.set(theme, scale)
    panel = KL_OVER_BETA.make(program.workspace)
    width, height = KL_OVER_BETA.size
    panel.resize(round(width * scale), round(height * scale))
    panel.show()
    settle(40)
    wait(lambda: not panel.busy)
    view, choice = CHOICES[name]
    if choice:
        panel.choices.choose(**choice)
    if name == "as far as it got":
        wait(lambda: (coming := panel.controller.coming) is not None and coming.count > 0)
        panel.controller.cancel()
    wait(lambda: not panel.busy)
    panel.choices.view.setCurrentIndex(panel.choices.view.findData(view))
    panel.choices.shown_otherwise.emit()
    panel.redraw()
    settle(60)
    image = panel.grab().toImage()
    panel.hide()
    panel.dispose()
    panel.deleteLater()
    return image


def wait(done: Callable[[], bool]) -> None:
    """Process the window's events until ``done`` returns True."""
    while not done():
        settle(20)


if __name__ == "__main__":
    sys.exit(main())
