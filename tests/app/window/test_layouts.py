"""Named layouts, computed from the registry of panels: positions for each kind of run and amount of space."""

from __future__ import annotations

import dataclasses

import pytest
from PySide6.QtCore import QSize

from app.panel_registry import PANELS
from app.theme.look import SCALES
from app.widgets.panel import Panel
from app.widgets.panel_spec import Area, DockPlace, LayoutVariant, PanelSpec
from app.window.layouts import LAYOUTS, Arrangement, arrangement, size_class
from app.workspace.workspace import Workspace

ALL = {spec.id for spec in PANELS if spec.area is not Area.TOP}


def placed(plan: Arrangement) -> list[str]:
    return [*plan.left, *plan.strip, *plan.centre, *plan.bottom, *plan.right, *plan.hidden]


@pytest.mark.parametrize("name", [*LAYOUTS, "A layout of my own"])
@pytest.mark.parametrize("language", [False, True])
@pytest.mark.parametrize("room", [0, 1, 2, 3])
def test_every_panel_stands_in_one_place(name: str, language: bool, room: int) -> None:
    plan = arrangement(name, language=language, space=room)
    assert sorted(placed(plan)) == sorted(ALL)
    roomy = arrangement(name, language=language)
    assert plan.left and plan.strip and bool(plan.bottom) == bool(room or roomy.bottom)
    assert bool(plan.centre) == (room < (1 if roomy.halved else 2))
    assert not (plan.right and (room or name in ("Compare", "Present")))


DESIGNED = """
    timeline controls metrics pipeline policy_bars training_history evolution score_your_own kl_over_beta comparison
    token_inspector what_if queue step_detail explain breakpoints glossary references lesson completions diagnosis
"""
"""Panels whose positions the tests below specify. Other panels are placed by their rows in the registry."""


def designed(panels: tuple[str, ...]) -> str:
    return " ".join(panel for panel in panels if panel in DESIGNED.split())


@pytest.mark.parametrize(
    ("name", "language", "centre", "bottom", "right"),
    [
        ("Bandit", False, "policy_bars kl_over_beta comparison token_inspector", "", "step_detail training_history"),
        (
            "Language model",
            True,
            "evolution kl_over_beta",
            "training_history score_your_own step_detail",
            "token_inspector",
        ),
        (
            "Compare",
            False,
            "comparison kl_over_beta",
            "what_if policy_bars training_history token_inspector step_detail explain",
            "",
        ),
        (
            "Compare",
            True,
            "comparison kl_over_beta",
            "what_if token_inspector training_history evolution score_your_own step_detail explain",
            "",
        ),
        ("Present", False, "policy_bars comparison", "training_history explain", ""),
        ("Present", True, "evolution", "token_inspector training_history explain", ""),
    ],
)
def test_a_layout_shows(name: str, language: bool, centre: str, bottom: str, right: str) -> None:
    plan = arrangement(name, language=language)
    assert (designed(plan.left), designed(plan.strip)) == ("controls", "metrics pipeline")
    assert (designed(plan.centre), designed(plan.bottom), designed(plan.right)) == (centre, bottom, right)
    assert plan.picture == centre.split()[0]


def test_layouts_made_for_one_kind_of_run_do_not_follow_the_run() -> None:
    assert arrangement("Bandit", language=True) == arrangement("Bandit", language=False)
    assert arrangement("Language model", language=False) == arrangement("Language model", language=True)
    assert arrangement("A layout of my own", language=True) == arrangement("Language model", language=True)


def test_in_little_room_the_pictures_share_one_place_and_in_the_least_the_formula_is_a_tab_too() -> None:
    no_right, little, least = (arrangement("Bandit", language=False, space=space) for space in (1, 2, 3))
    assert not no_right.right and no_right.bottom == ("training_history", "step_detail")
    assert little.strip == ("metrics", "pipeline") and not little.centre
    assert least.strip == ("metrics",) and least.bottom[-1] == "pipeline"
    for plan in (little, least):
        assert plan.bottom[0] == plan.picture == "policy_bars"


@pytest.mark.parametrize(
    ("width", "height", "scale", "room"),
    [
        (1366, 768, 1.0, 0),
        (1366, 768, 1.1, 0),
        (1366, 768, 1.25, 1),
        (1366, 768, 1.5, 2),
        (1366, 768, 2.0, 3),
        (1280, 680, 1.0, 0),
        (1920, 1080, 1.5, 0),
        (1920, 1080, 2.0, 2),
    ],
)
def test_the_arrangement_follows_the_room_that_type_leaves(width: int, height: int, scale: float, room: int) -> None:
    assert size_class(QSize(width, height), scale) == room


@pytest.mark.parametrize("size", [(1366, 768), (1920, 1080), (1280, 680), (3840, 2160)])
def test_classes_of_sizes_grow_with_the_type(size: tuple[int, int]) -> None:
    classes = [size_class(QSize(*size), scale) for scale in SCALES]
    assert classes == sorted(classes)


def test_a_new_row_finds_its_place_in_every_layout() -> None:
    """A panel is added to the window by its row alone."""

    def never(workspace: Workspace) -> Panel:
        raise AssertionError("a layout makes no panel")

    shown = {layout: DockPlace(Area.RIGHT) for layout in LayoutVariant}
    toy: PanelSpec[Panel] = PanelSpec(id="toy", title="Toy", help="A toy.", factory=never, shown=shown)
    hidden = dataclasses.replace(toy, id="hidden toy", shown={})
    for name in LAYOUTS:
        plan = arrangement(name, language=False, panels=(*PANELS, toy, hidden))
        assert (plan.right or plan.bottom)[-1] == "toy"
        assert plan.hidden["hidden toy"] is Area.BOTTOM
