"""The completions of an update in progress as lines: their text and their positions."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable

import pytest
from PySide6.QtCore import QPointF, QSize
from pytestqt.qtbot import QtBot

from app.clock import ManualClock
from app.panels.tokens.being_written import ANNOUNCE_SECONDS, SHARE, BeingWritten, Writing
from grpo_core.config import folder_settings
from grpo_core.lm.vocabulary import STOP, encode
from grpo_core.progress import Phase, Progress, Written
from grpo_core.record import Origin
from tests.app.conftest import Driver
from tests.core.lm_steps import lm_origin

pytestmark = pytest.mark.one_window

WORDS = ("<|im_end|>", "<|im_start|>", "user", "assistant", "\n", "What", " is", " 7", "12", ".")


def progress(*completions: tuple[int, ...], ended: tuple[bool, ...], phase: Phase = Phase.SAMPLING) -> Progress:
    prompt = tuple(encode("3+8*3="))
    written = Written(group=0, prompt=prompt, completions=completions, ended=ended)
    return Progress(step=4, phase=phase, done=3, total=24, written=written)


def folder_origin() -> Origin:
    return dataclasses.replace(lm_origin(), settings=folder_settings("model"), vocabulary=WORDS)


def test_a_line_is_a_completion_as_far_as_it_is_written_without_its_end_sign() -> None:
    shown = Writing.of(progress((*encode("27"), STOP), tuple(encode("11*")), ended=(True, False)), lm_origin())
    assert shown is not None
    assert (shown.lines, shown.ended) == (("27", "11*"), (True, False))
    assert shown.caption == "Update 4 is being written, token 3 of 24: “3+8*3=”"
    assert shown.words.splitlines() == [shown.caption, "27", "11* …"]


def test_a_pretrained_models_completion_stands_on_one_line_and_its_prompt_without_the_template() -> None:
    written = Written(
        group=0, prompt=(1, 2, 4, 5, 6, 7, 0, 4, 1, 3, 4), completions=((7, 4, 8, 9, 0), (5, 6)), ended=(True, False)
    )
    shown = Writing.of(Progress(step=1, phase=Phase.SAMPLING, done=6, total=12, written=written), folder_origin())
    assert shown is not None
    assert shown.lines == ("7 12.", "What is")
    assert "“What is 7”" in shown.caption
    assert shown.words_on_groups == ""


def test_every_group_has_a_bar_that_says_how_much_of_it_is_written(follow: Follow) -> None:
    said = dataclasses.replace(many(8), groups=(0.25, 1.0, 0.0))
    strip = follow(said, QSize(560, 320))
    assert strip.writing is not None and len(strip.bars) == 3
    assert all(strip.rect().contains(bar.toAlignedRect()) for bar in strip.bars)
    assert not any(bar.intersects(strip.box(0)) for bar in strip.bars)
    assert strip.tip(strip.bars[1].center()) == "Written of each group: 25%, 100%, 0%."
    assert strip.accessibleDescription().endswith(strip.writing.words_on_groups)
    painted = strip.grab().toImage()
    ratio = painted.devicePixelRatio()
    full, none = (painted.pixelColor((bar.center() * ratio).toPoint()) for bar in (strip.bars[1], strip.bars[2]))
    assert full != none, "a bar is filled as far as its group is written"
    assert follow(dataclasses.replace(said, groups=(0.1,) * 400), QSize(560, 320)).bars == [], (
        "too many to be told apart"
    )


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase is not Phase.SAMPLING])
def test_once_they_are_sampled_none_goes_on_and_they_are_said_to_be_learned_from(phase: Phase) -> None:
    shown = Writing.of(progress(tuple(encode("11*")), ended=(False,), phase=phase), lm_origin())
    assert shown is not None
    assert shown.ended == (True,) and "learning from" in shown.caption


def test_of_an_update_that_tells_no_completions_nothing_is_shown() -> None:
    assert Writing.of(Progress(step=4, phase=Phase.TRAINING, done=1, total=2), lm_origin()) is None


Follow = Callable[..., BeingWritten]


@pytest.fixture
def follow(language: Driver, qtbot: QtBot) -> Follow:
    """Shows an update in progress in a panel of a given size."""
    strip = BeingWritten()
    qtbot.addWidget(strip)

    def followed(progress: Progress | None, size: QSize, *, running: bool = True, scale: float = 1.0) -> BeingWritten:
        view = dataclasses.replace(language.program.workspace.view, progress=progress, running=running, scale=scale)
        strip.follow(view, size)
        strip.resize(size.width(), strip.height())
        return strip

    return followed


def many(count: int) -> Progress:
    return progress(*[tuple(encode(str(n))) for n in range(count)], ended=(False,) * count)


SIZES = ((560, 320, 1.0), (1060, 190, 1.0), (300, 500, 1.0), (1120, 640, 2.0))


def test_every_completion_has_a_line_within_its_share_or_as_many_as_have_room(follow: Follow) -> None:
    for (width, height, scale), count in itertools.product(SIZES, (1, 8, 16)):
        one_line = follow(many(1), QSize(width, height), scale=scale).height()
        strip = follow(many(count), QSize(width, height), scale=scale)
        assert strip.height() <= max(SHARE * height + 2, one_line)
        boxes = [box.adjusted(1, 1, -1, -1) for box in map(strip.box, range(count)) if not box.isEmpty()]
        for n, box in enumerate(boxes):
            assert strip.rect().contains(box.toAlignedRect())
            assert not any(box.intersects(other) for other in boxes[n + 1 :])
        columns, tops = {round(box.left()) for box in boxes}, {round(box.top()) for box in boxes}
        assert len(boxes) == count or len(columns) * len(tops) == len(boxes), "no place is left empty"
        if len(columns) > 1:
            fewer = count / (len(columns) - 1) * strip.height() / len(tops)
            assert fewer > SHARE * height / 2, "beside each other only where there are too many"


def test_it_keeps_its_place_while_the_run_goes_on_and_leaves_with_it(follow: Follow) -> None:
    size = QSize(560, 320)
    assert follow(None, size).isHidden(), "quick updates need no room"
    strip = follow(many(8), size)
    height = strip.height()
    assert not strip.isHidden()
    strip = follow(None, size)
    assert not strip.isHidden() and strip.height() == height and strip.writing is None
    assert follow(None, size, running=False).isHidden()


def test_a_screen_reader_hears_of_growing_completions_once_a_second_and_of_complete_ones_at_once(
    follow: Follow, clock: ManualClock
) -> None:
    size, tokens = QSize(560, 320), tuple(encode("11*3"))
    first = follow(progress(tokens[:1], ended=(False,)), size).accessibleDescription()
    assert first.endswith("\n1 …")
    assert follow(progress(tokens[:2], ended=(False,)), size).accessibleDescription() == first
    clock.advance(1000 * ANNOUNCE_SECONDS)
    assert follow(progress(tokens[:3], ended=(False,)), size).accessibleDescription().endswith("\n11* …")
    assert follow(progress(tokens, ended=(True,)), size).accessibleDescription().endswith("\n11*3")


def test_what_is_cut_off_can_be_read_under_the_mouse(follow: Follow) -> None:
    long = "3+8*3=" * 40
    strip = follow(progress(tuple(encode(long)), ended=(True,)), QSize(300, 300))
    assert strip.tip(strip.box(0).center()) == long
    assert strip.writing is not None and strip.tip(QPointF(5, 5)) == strip.writing.caption
