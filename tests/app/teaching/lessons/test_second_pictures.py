"""What screen readers say about the pictures of lessons, read by a second check of the words, over other seeds."""

from __future__ import annotations

from collections import Counter

import pytest
from PySide6.QtWidgets import QWidget

from app.plotting.bar_chart import BarChart
from app.plotting.plot import Plot
from app.teaching.lessons.catalogue import lessons
from app.widgets.panel import in_window
from grpo_core.teaching.lessons import Lesson
from tests.app.second_pictures import Shown, read
from tests.app.teaching.lessons.hands import Pupil

pytestmark = [pytest.mark.one_window, pytest.mark.long, pytest.mark.timeout(900)]

OF_ONE_RUN = ("why_rl", "clipping", "difficulty", "reward_hacking", "whose_words")
"""Lessons whose pictures tell of the updates of one run."""
LESSONS = [lesson for lesson in lessons()[0] if lesson.id in OF_ONE_RUN]


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.id)
def test_no_sentence_about_a_lessons_picture_is_contradicted_by_the_arrays(pupil: Pupil, lesson: Lesson) -> None:
    seen, wrong, player = Counter[str](), [], pupil.lesson_player
    for block in range(3):
        told = lesson.with_other_seeds(block) if block else lesson
        for place in range(len(lesson.steps)):
            player.open(told, place)
            pupil.wait()
            while player.covered:
                player.skip()
                pupil.wait()
            view = pupil.driver.program.workspace.view
            steps = [step for number in range(1, view.run.head + 1) if (step := view.run.step(number)) is not None]
            kinds = (Plot, BarChart)
            charts = [part for part in pupil.picture.findChildren(QWidget) if isinstance(part, kinds)]
            texts = {pupil.picture.summary(view), *(part.accessibleDescription() for part in charts if in_window(part))}
            shown = Shown(steps=steps, at=view.cursor.step, passed=view.step.passed, context=0)
            for text in texts if steps and view.cursor.step else ():
                parts = list(read(text, shown))
                seen["sentences"] += 1
                seen["parts"] += len(parts)
                wrong += [(part, text) for part, holds in parts if not holds]
    assert not wrong, (len(wrong), seen, wrong[:5])
    print(f"\n{lesson.id}: {seen['sentences']} sentences, {seen['parts']} parts read")
    assert seen["parts"]
