"""Savers of everything that the program saves. They print each acknowledged save: ``run n`` if updates up to n are
committed; ``session n``, ``preferences n`` or ``lessons n`` for the n-th save of that kind.
"""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import count
from pathlib import Path

from app.settings.preferences import Preferences, save_preferences
from app.teaching.lessons.progress import LessonProgress
from grpo_core import learners
from grpo_core.config import Settings
from grpo_core.metrics import metrics
from grpo_core.runs.run_file import RunWriter
from grpo_core.runs.session import Manifest, save_session
from tests.core.runs.forks import say, serve

MADE = [next(learner) for learner in [learners.learner(Settings())] for _ in range(16)]
SCALARS = [metrics(step) for step in MADE]


def save(folder: Path, seed: int) -> None:
    """Save in random order until killed."""
    chance = random.Random(seed)
    progress = LessonProgress(folder / "lessons.json")
    writer = RunWriter.create(folder / "run.grpo", Settings())
    say("run", 0)
    number, last = 0, 0
    for turn in count(1):
        deed = chance.choice(("run", "run", "run", "session", "preferences", "lessons"))
        if deed == "run":
            for _ in range(chance.randrange(1, 40)):
                number += 1
                writer.append(replace(MADE[number % 16], step=number), SCALARS[number % 16])
                if writer.committed > last:
                    last = writer.committed
                    say("run", last)
            writer.commit()
            last = writer.committed
        elif deed == "session":
            manifest = Manifest(notes=str(turn), settings=Settings(), lesson="clip", lesson_step=turn)
            save_session(folder / "x.grposession", manifest, [writer.path])
        elif deed == "preferences":
            refusal = save_preferences(Preferences(kept_runs=turn), folder / "preferences.json")
            assert refusal is None, refusal
        else:
            refusal = progress.reach("clip", turn, last=False)
            assert refusal is None, refusal
        say(deed, last if deed == "run" else turn)


if __name__ == "__main__":
    serve(save)
