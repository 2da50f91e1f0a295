"""The transport: it replays behind the head, computes at the head, and does not affect other runs."""

from __future__ import annotations

import pytest

from app.clock import ManualClock
from app.training.controller import State
from app.workspace.cursor import Cursor, Stage
from app.workspace.film import BEATS, SECONDS, update_film
from app.workspace.player import Mode
from grpo_core.config import Settings
from tests.app.workspace.conftest import Desk, on_disk


def test_run_stops_by_itself_after_its_length(desk: Desk) -> None:
    desk.player.set_length(7)
    desk.player.toggle()
    desk.rest()
    assert (desk.shown.head, desk.here, desk.workspace.following) == (7, 7, True)


def test_the_same_key_runs_and_pauses(desk: Desk) -> None:
    desk.player.set_length(None)
    desk.player.toggle()
    desk.until(5)
    desk.player.toggle()
    desk.rest()
    head = desk.shown.head
    desk.player.toggle()
    desk.until(head + 5)
    desk.player.toggle()
    desk.rest()
    assert desk.shown.head >= head + 5


def test_steps_behind_the_head_are_shown_and_at_the_head_computed(desk: Desk) -> None:
    desk.run(3)
    desk.workspace.move_to(1)
    for expected in (2, 3):
        desk.player.step()
        assert (desk.here, desk.shown.head) == (expected, 3)
    desk.player.step()
    desk.rest()
    assert (desk.here, desk.shown.head) == (4, 4)


def test_a_step_plays_its_film_at_any_speed_and_pressed_again_goes_on(desk: Desk) -> None:
    assert desk.player.staged and desk.player.speed is None
    desk.player.step()
    desk.qtbot.waitUntil(lambda: desk.player.film.whole)
    assert (desk.here, desk.workspace.cursor.stage) == (1, Stage.SAMPLE)
    desk.player.step()
    desk.qtbot.waitUntil(lambda: desk.shown.head == 2 and desk.player.film.whole)
    desk.player.staged = False
    desk.player.step()
    desk.rest()
    assert desk.workspace.cursor == Cursor(step=3) and not desk.player.film.playing


def test_the_film_of_an_update_is_as_long_as_a_slow_run_leaves_it() -> None:
    lengths = [update_film(1, 4, interval).seconds for interval in (0.5, 1.0, 4.0, 8.0, 60.0)]
    assert lengths == sorted(lengths) and 6 <= lengths[-1] <= 8 and lengths[-2] == lengths[-1]
    assert update_film(1, 4, 0.5).quick and not update_film(1, 4, 4.0).quick


def test_an_update_half_revealed_is_revealed_before_the_next(desk: Desk) -> None:
    desk.run(2)
    desk.workspace.show_stage(Stage.SCORE)
    desk.player.step()
    assert (desk.here, desk.workspace.cursor.stage, desk.shown.head) == (2, Stage.UPDATE, 2)


def test_stages_walk_from_update_to_update_and_back(desk: Desk) -> None:
    desk.run(2)
    desk.workspace.move_to(0)
    walked = []
    for _ in range(8):
        desk.player.stage()
        walked.append((desk.here, desk.workspace.cursor.stage, desk.workspace.cursor.passed))
    stages = [(Stage.SAMPLE, -1), (Stage.SCORE, -1), (Stage.NORMALIZE, -1), *((Stage.UPDATE, n) for n in range(4))]
    assert walked == [(1, *stage) for stage in stages] + [(2, Stage.SAMPLE, -1)]
    desk.player.stage_back()
    assert (desk.here, desk.workspace.cursor.stage, desk.workspace.cursor.passed) == (1, Stage.UPDATE, -1)
    desk.player.stage_back()
    assert (desk.here, desk.workspace.cursor.stage, desk.workspace.cursor.passed) == (1, Stage.UPDATE, 2)
    assert desk.shown.head == 2


def test_stages_stop_at_update_0(desk: Desk) -> None:
    desk.run(1)
    desk.workspace.show_stage(Stage.SAMPLE)
    for _ in range(3):
        desk.player.stage_back()
    assert desk.here == 0


@pytest.mark.parametrize(("speed", "shown"), [(10.0, [2, 3, 4, 5, 6, 7, 8]), (30.0, [4, 7, 8])])
def test_behind_the_head_run_replays_at_most_ten_updates_a_second_and_goes_live(
    desk: Desk, clock: ManualClock, speed: float, shown: list[int]
) -> None:
    desk.run(8)
    desk.workspace.move_to(1)
    desk.player.set_length(3)
    desk.player.set_speed(speed)
    desk.player.toggle()
    seen = []
    while desk.here < 8:
        assert desk.player.mode is Mode.REPLAYING
        seen.append(tick(desk, clock, 0.1).step)
    assert seen == shown
    tick(desk, clock, 0.1)
    desk.rest()
    assert (desk.here, desk.shown.head) == (11, 11)


@pytest.mark.parametrize("press", ["toggle", "step", "step_back", "stage", "stage_back"])
def test_any_press_ends_a_replay(desk: Desk, press: str) -> None:
    desk.run(5)
    desk.workspace.move_to(2)
    desk.player.toggle()
    getattr(desk.player, press)()
    assert desk.player.mode is Mode.RESTING
    assert (desk.controller.state, desk.shown.head) == (State.PAUSED, 5)


def test_stepping_back_pauses_what_is_computed_and_end_follows_again(desk: Desk) -> None:
    desk.go(5)
    desk.player.step_back()
    desk.rest()
    assert not desk.workspace.following
    desk.workspace.follow()
    assert desk.here == desk.shown.head


def test_the_cursor_stays_where_it_is_put_while_the_run_goes_on(desk: Desk) -> None:
    desk.go(5)
    desk.workspace.move_to(3)
    desk.until(desk.shown.head + 10)
    assert desk.here == 3
    desk.player.pause()
    desk.rest()


def test_run_n_counts_from_the_cursor(desk: Desk) -> None:
    desk.run(10)
    desk.workspace.move_to(4)
    desk.player.run_n(3)
    assert (desk.here, desk.shown.head) == (7, 10)
    desk.run(5)
    assert (desk.here, desk.shown.head) == (12, 12)


def test_so_many_at_once_do_not_keep_to_the_slow_speed(desk: Desk) -> None:
    desk.player.set_speed(0.25)
    desk.player.run_n(40, at_once=True)
    desk.rest()
    assert desk.shown.head == 40 and desk.player.speed == 0.25 and not desk.player.film.playing


def test_presses_of_step_add_up(desk: Desk) -> None:
    for _ in range(3):
        desk.player.step()
    desk.rest()
    assert desk.shown.head == 3


def test_another_speed_holds_at_once(desk: Desk) -> None:
    desk.player.set_speed(1.0)
    desk.player.staged = False
    desk.player.run()
    desk.until(1)
    desk.player.set_speed(None)
    desk.until(50)
    desk.player.pause()
    desk.rest()


# -- films -------------------------------------------------------------------------------------------------------------


def tick(desk: Desk, clock: ManualClock, seconds: float) -> Cursor:
    """Advance the clock, and show a picture of the film."""
    clock.advance(1000 * seconds)
    return desk.workspace.cursor


@pytest.mark.parametrize(("speed", "stages"), [(2.0, BEATS), (1.0, tuple(Stage))])
def test_slow_runs_play_the_stages_of_each_update(
    desk: Desk, clock: ManualClock, speed: float, stages: tuple[Stage, ...]
) -> None:
    desk.player.set_speed(speed)
    for update in (1, 2):
        desk.player.run_n(1)
        desk.qtbot.waitUntil(lambda: desk.player.film.playing)
        assert desk.player.film.film is not None
        assert tuple(dict.fromkeys(end.stage for end, _ in desk.player.film.film.parts)) == stages
        assert 0 < tick(desk, clock, 0.1).progress < 1
        assert tick(desk, clock, 1 / speed) == Cursor(step=update)
        desk.rest()


def test_a_stage_plays_once_and_stops_at_its_end(desk: Desk, clock: ManualClock) -> None:
    desk.run(2)
    desk.workspace.move_to(1)
    desk.player.stage()
    assert desk.workspace.cursor == Cursor(step=2, stage=Stage.SAMPLE, progress=0.0)
    assert tick(desk, clock, SECONDS[Stage.SAMPLE] / 2).progress == pytest.approx(0.5)
    assert tick(desk, clock, SECONDS[Stage.SAMPLE]) == Cursor(step=2, stage=Stage.SAMPLE)
    assert not desk.player.busy
    assert tick(desk, clock, 10.0) == Cursor(step=2, stage=Stage.SAMPLE)


def test_the_same_key_pauses_a_film_and_lets_it_go_on(desk: Desk, clock: ManualClock) -> None:
    desk.run(1)
    desk.workspace.move_to(0)
    desk.player.stage()
    tick(desk, clock, 0.1)
    desk.player.toggle()
    stood = desk.workspace.cursor
    assert 0 < stood.progress < 1
    assert tick(desk, clock, 5.0) == stood
    desk.player.toggle()
    assert tick(desk, clock, 0.1).progress == pytest.approx(0.5)
    assert desk.shown.head == 1


def test_whoever_moves_the_cursor_ends_the_film(desk: Desk, clock: ManualClock) -> None:
    desk.run(3)
    desk.workspace.move_to(1)
    desk.player.stage()
    desk.workspace.move_to(3)
    assert tick(desk, clock, 0.1) == Cursor(step=3)
    assert desk.player.film.film is None


def test_with_reduced_motion_a_stage_is_there_at_once(desk: Desk) -> None:
    desk.run(1)
    desk.player.staged = False
    desk.workspace.move_to(0)
    desk.player.stage()
    assert desk.workspace.cursor == Cursor(step=1, stage=Stage.SAMPLE)
    assert not desk.player.busy


def test_a_run_that_is_paused_within_a_film_goes_on_after_it(desk: Desk, clock: ManualClock) -> None:
    desk.player.set_speed(1.0)
    desk.player.set_length(3)
    desk.player.run()
    desk.qtbot.waitUntil(lambda: desk.player.film.playing)
    desk.player.toggle()
    desk.rest()
    head, stood = desk.shown.head, desk.workspace.cursor
    assert stood != Cursor(step=stood.step)
    desk.player.set_speed(None)
    desk.player.toggle()
    tick(desk, clock, 1.0)
    desk.rest()
    assert desk.here == head + 3


def test_a_run_that_is_paused_within_a_film_stays_paused_after_that_of_an_update_which_was_on_its_way(
    desk: Desk, clock: ManualClock
) -> None:
    desk.player.set_speed(1.0)
    desk.player.run()
    desk.qtbot.waitUntil(lambda: desk.player.film.playing)
    desk.player.pause()
    desk.rest()
    head = desk.shown.head
    desk.player.on_new_head()
    film = desk.player.film.film
    assert film is not None and desk.player.film.playing
    tick(desk, clock, 2 * film.seconds)
    assert desk.player.film.film is None and not desk.player.busy
    assert desk.shown.head == head


@pytest.mark.parametrize("interval", [0.5, 0.99, 1.0, 3.0])
def test_a_film_ends_before_the_next_update_is_due(interval: float) -> None:
    film = update_film(7, 4, interval)
    assert film.seconds <= interval
    assert film.at(0.0) == Cursor(step=7, stage=Stage.SAMPLE, progress=0.0)
    assert film.at(interval) == Cursor(step=7, stage=Stage.UPDATE, passed=3)
    for part in range(1, 20):
        cursor = film.at(part / 20 * film.seconds)
        place = [end for end, _ in film.parts].index(cursor.still)
        reached = sum(seconds for _, seconds in film.parts[:place]) + cursor.progress * film.parts[place][1]
        assert reached == pytest.approx(part / 20 * film.seconds)


# -- two runs ----------------------------------------------------------------------------------------------------------


def _one_trains_another_is_shown(desk: Desk) -> None:
    desk.run(4)
    first = desk.shown
    desk.run_manager.new_run(Settings(seed=8))
    desk.go(3)
    desk.run_manager.show(first)


def test_replaying_one_run_leaves_another_training(desk: Desk) -> None:
    _one_trains_another_is_shown(desk)
    training = desk.workspace.training
    assert training is not None
    desk.workspace.move_to(1)
    desk.player.toggle()
    assert desk.player.busy
    desk.player.toggle()
    assert desk.player.mode is Mode.COMPUTING
    assert not desk.player.busy
    head = training.head
    desk.until(head + 5)
    desk.player.step_back()
    assert desk.here == 0
    assert desk.controller.state is State.RUNNING


def test_running_one_run_pauses_the_other_with_all_it_has_computed(desk: Desk) -> None:
    _one_trains_another_is_shown(desk)
    shown, other = desk.shown, desk.workspace.training
    assert other is not None
    desk.player.set_length(5)
    desk.player.toggle()
    desk.rest()
    assert (shown.head, desk.workspace.training) == (9, shown)
    assert on_disk(other) == other.head
    desk.run_manager.show(other)
    desk.run(2)
    assert desk.said == []
    assert on_disk(other) == other.head
