"""A process that saves runs, sessions, preferences and progress is killed at any moment; nothing acknowledged is lost.

``GRPO_LAB_KILLS=1000`` sets the number of kills.
"""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from app.settings.preferences import load_preferences
from app.teaching.lessons.progress import LessonProgress
from grpo_core.metrics import METRICS
from grpo_core.runs.run_file import RunReader, RunWriter
from grpo_core.runs.verify import verified
from tests.core.runs.forks import Server
from tests.sessions import open_session, read_manifest

KILLS = int(os.environ.get("GRPO_LAB_KILLS", "120"))
pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(60 + 5 * KILLS),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="forks what it kills"),
]


def killed(server: Server, folder: Path, seed: int) -> dict[str, int]:
    """Return, for each kind of file, the last number acknowledged by a process killed at a random moment."""
    chance = random.Random(seed)
    after, moment = chance.randrange(1, 120), chance.random() * 0.02
    said = server.killed(folder, seed, lambda said: len(said) >= after, moment)
    return {kind: int(number) for kind, number in said}


def check(folder: Path, told: dict[str, int]) -> Counter[str]:
    """Assert that everything acknowledged exists, and that everything that exists is readable. Returns counts of
    what was found.
    """
    met: Counter[str] = Counter(told)
    if "run" in told:
        with RunReader.open(folder / "run.grpo") as reader:
            assert reader.last >= told["run"]
            for number in range(1, reader.last + 1):
                assert reader.step(number).step == number
            for name in METRICS:
                assert len(reader.series(name)) == reader.last
        assert [part for part in verified(folder / "run.grpo") if part.damaged or part.unchecked] == []
        with RunWriter.open(folder / "run.grpo") as writer:  # and it can be continued
            assert writer.committed >= told["run"]
    session = folder / "x.grposession"
    if "session" in told or session.exists():
        manifest = read_manifest(session)
        assert manifest.lesson_step >= told.get("session", 1)
        (folder / "opened").mkdir()
        assert open_session(session, folder / "opened")[0].notes == str(manifest.lesson_step)
    preferences, said = load_preferences(folder / "preferences.json")
    assert said == ()
    if "preferences" in told:
        assert preferences.kept_runs >= told["preferences"]
    progress = LessonProgress(folder / "lessons.json")
    assert progress.problem == ""
    if "lessons" in told:
        assert progress.reached["clip"].step >= told["lessons"]
    return met


def test_whatever_is_saved_when_it_is_killed_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    met: Counter[str] = Counter()
    with closing(Server("tests.long.saving_process")) as server:
        for seed in range(KILLS):
            folder = tmp_path / str(seed)
            folder.mkdir()
            for kind, many in check(folder, killed(server, folder, seed)).items():
                met[kind] += bool(many)
            shutil.rmtree(folder)
    print(f"{KILLS} kills; had saved before:", dict(met))
    for kind in ("run", "session", "preferences", "lessons"):
        assert met[kind] > KILLS / 4, met
