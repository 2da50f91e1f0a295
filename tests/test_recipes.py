"""The recipes in HACKING.md: each addition is made in a copy of the source, in no more places than the recipe lists.

A place is a file to create or to edit. What was added is then trained, explained, diagnosed and exported by the copy.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]


class Recipe(NamedTuple):
    """An addition: a section of HACKING.md, edits (path -> the text before which a text is inserted), and a script."""

    section: str
    places: int
    edits: dict[str, tuple[str, str]]
    script: str


TRAIN = """
from itertools import islice
from pathlib import Path
import csv, sys
import numpy as np
from grpo_core.config import Settings, language_settings
from grpo_core.explain import Quantity, explain
from grpo_core.export.tables import export_folder, export_step
from grpo_core.learners import learner
from grpo_core.runs.run_file import RunReader, RunWriter
from grpo_core.trainers.health import diagnose
from grpo_core.trainers.health.report import as_text
from grpo_core.trainers.own_run import OwnRun

def trained(settings, count):
    with RunWriter.create(Path("run.grpo"), settings=settings, title="a trial") as writer:
        for step in islice(learner(settings), count):
            writer.append(step)
    return RunReader.open(Path("run.grpo"))
"""

REWARD = Recipe(
    section="Add a reward",
    places=1,
    edits={
        "grpo_core/config/language.py": (
            "    accuracy_every: int = detail(",
            """    digits_weight: float = weight(
        Reward(
            name="digits",
            title=tr("digits"),
            symbol="x^{D}",
            score=lambda c: sum(map(str.isdigit, c.text)),
            scored=lambda p: not (p.in_words or p.has_tool),
        ),
        0.0,
        tr("Reward of each digit."),
        tr("Each digit pays"),
        usual=(0, 1),
        since="0.4.0",
    )
""",
        )
    },
    script=TRAIN
    + """
with RunReader.open(Path(sys.argv[1]) / "resources/starts/gameable.grpo") as reader:  # written before the addition
    step = reader.step(reader.last)
    assert step.part_names == ("right_answer", "well_formed", "equals_signs"), step.part_names
    for row in range(len(step.rewards)):
        node = explain(step, Quantity("reward", row=row))
        assert node.agrees and np.isclose(node.value, step.rewards[row]), node
    assert np.isnan(explain(step, Quantity("digits", row=0)).value)

settings = language_settings().replace({"task.digits_weight": 0.25, "task.prompts": 2, "learner.group_size": 3})
with trained(settings, 2) as reader:
    step = reader.step(2)
    assert step.part_names[-1] == "digits"
    said = ["".join(reader.origin.vocabulary[t] for t in row[kept]) for row, kept in zip(step.tokens, step.mask)]
    assert step.reward_parts[:, -1].tolist() == [sum(map(str.isdigit, text)) for text in said]
    node = explain(step, Quantity("reward", row=0))
    assert node.agrees and Quantity("digits", row=0) in node.inputs, node
    assert explain(step, Quantity("digits", row=0)).title.startswith("digits")
    export_folder(reader, Path("out"))
with open("out/samples.csv") as file:
    rows = [row for row in csv.DictReader(file) if row["update"] == "2" and row["sample"] == "1"]
assert float(rows[0]["reward_digits"]) == step.reward_parts[0, -1]
assert OwnRun(Path("run.grpo")).step(2).settings.recorded.reward_names[-1] == "digits"
run = OwnRun(Path("run.grpo"))
assert as_text(run, diagnose(run))
from app.panels.controls.kinds import applies
assert applies("task.digits_weight", settings) and not applies("task.digits_weight", Settings())
""",
)

SURROGATE = Recipe(
    section="Add a surrogate",
    places=2,
    edits={
        "grpo_core/surrogates/half.py": (
            "",
            (ROOT / "grpo_core/surrogates/log_prob.py")
            .read_text(encoding="utf-8")
            .replace("b.advantage", "0.5 * b.advantage")
            .replace("t.advantage,", "t.advantage / 2,")
            .replace("a = t.advantage\n", "a = t.advantage / 2\n")
            .replace("= A", "= 0.5 * A"),
        ),
        "grpo_core/config/objective.py": ('    "log_prob": tr("log-probability"),', '    "half": tr("half"),\n'),
    },
    script=TRAIN
    + """
settings = Settings().replace({"objective.surrogate": "half", "learner.mu": 2})
with trained(settings, 3) as reader:
    step = reader.step(3)
    for name in ("surrogate", "push", "token_loss"):
        node = explain(step, Quantity(name, passed=1, row=0, token=0))
        assert node.agrees and np.isfinite(node.value), node
    export_step(reader, Path("step.py"), 3)
exec(compile(Path("step.py").read_text(), "step.py", "exec"))
run = OwnRun(Path("run.grpo"))
assert as_text(run, diagnose(run))
""",
)

FINDING = Recipe(
    section="Add a finding",
    places=2,
    edits={
        "grpo_core/trainers/health/lengths.py": (
            "def judge_cut_off(",
            '''def judge_any_cut(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for completions that are cut off."""
    share = sum(m.value for m in measures) / len(measures)
    what = [Fault.of("cut_off", share=share)]
    return Verdict(grade=grade("cut_many"), what=what, began=measures[0].label, evidence=()) if share > 0.9 else None


''',
        ),
        "grpo_core/trainers/health/checks.py": (
            '    "truncation": Check(',
            """    "any_cut": Check(
        title=tr("A completion that is cut off"), quantity=None,
        measure=lengths.cut_off, judge=lengths.judge_any_cut,
        advice=("longer_limit",), source=tr("by definition"), of_texts=True,
    ),
""",
        ),
    },
    script=TRAIN
    + """
from grpo_core.trainers.importers import open_source
for folder, found in (("cut_short", True), ("part_constant", False)):
    run = open_source(Path(sys.argv[1]) / "tests/data/diseased" / folder)
    result = diagnose(run)
    assert ("any_cut" in [finding.check for finding in result.findings]) == found
    assert "A completion that is cut off" in as_text(run, result)
""",
)

PANEL = Recipe(
    section="Add a panel",
    places=2,
    edits={
        "app/panels/trial.py": (
            "",
            """from __future__ import annotations

from PySide6.QtWidgets import QLabel, QVBoxLayout

from app.widgets.panel import Panel
from app.workspace.view import View
from app.workspace.workspace import Workspace


class TrialPanel(Panel):
    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self.label = QLabel()
        QVBoxLayout(self).addWidget(self.label)

    def draw(self, view: View) -> None:
        self.label.setText(f"update {view.cursor.step}")

    def summary(self, view: View) -> str:
        return self.label.text()
""",
        ),
        "app/panel_registry.py": (
            "STEP_DETAIL = PanelSpec(",
            """
TRIAL: PanelSpec[Panel] = PanelSpec(
    id="trial", title=tr("A trial"), factory=later("panels.trial", "TrialPanel"), help=tr("The number of the update.")
)

""",
        ),
    },
    script="""
import sys
from app.__main__ import main
from app.panel_registry import PANELS
ids = [spec.id for spec in PANELS]
assert ids.index("queue") < ids.index("trial") < ids.index("step_detail")
sys.argv = ["x", "export", sys.argv[1] + "/resources/starts/gameable.grpo", "--panel", "trial", "--out", "trial.png"]
assert main() == 0 and b"PNG" in open("trial.png", "rb").read(8)
""",
)
ALL = (REWARD, SURROGATE, FINDING, PANEL)


def test_hacking_lists_the_places_of_each_recipe() -> None:
    text = (ROOT / "HACKING.md").read_text(encoding="utf-8")
    for recipe in ALL:
        section = re.search(rf"^## {recipe.section}\n(.*?)^## ", text, re.DOTALL | re.MULTILINE)
        assert section is not None
        assert len(re.findall(r"^\| `", section[1], re.MULTILINE)) == recipe.places == len(recipe.edits)


@pytest.mark.parametrize("recipe", ALL, ids=lambda recipe: recipe.section)
def test_an_addition_by_the_recipe_works_everywhere(recipe: Recipe, tmp_path: Path) -> None:
    for package in ("grpo_core", "app"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "resources").symlink_to(ROOT / "resources", target_is_directory=True)
    for name, (before, inserted) in recipe.edits.items():
        path = tmp_path / name
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        assert text.count(before) == 1 or not before
        path.write_text(text.replace(before, inserted + before) if before else inserted, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", recipe.script, str(ROOT)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
