"""The simulator's page: its script, run by Qt's JavaScript engine, computes what the program records."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtQml import QJSEngine, QJSValue
from PySide6.QtWidgets import QApplication, QFileDialog

from app.teaching.export.page.simulator_page import CARDS, LARGEST, SLIDERS, simulator_page
from app.teaching.export.page_command import main
from grpo_core import recompute
from grpo_core.arrays import array_namespace, is_zero
from grpo_core.bandit.tasks import landscape_rewards
from grpo_core.config import Settings
from grpo_core.learners import learner
from grpo_core.metrics import metrics
from grpo_core.record import Step
from grpo_core.teaching.simulator.program import (
    ALGORITHMS,
    LANDSCAPES,
    OPTIMIZERS,
    SEEDS,
    SIZES,
    UPDATES,
    function,
    program,
    settings_of,
    uniforms,
)
from grpo_core.teaching.simulator.recording import Recording
from tests.app.conftest import Driver
from tests.app.teaching.test_page import Page, opened_in_chromium

Choice = tuple[str, int, str, str, int]
"""Algorithm, group size, optimizer, landscape and seed."""
FEW: tuple[Choice, ...] = (
    ("GRPO (DeepSeekMath)", 8, "sgd", "single_peak", 7),
    ("RLOO", 4, "adam", "double_peak", 1),
    ("CISPO", 2, "sgd", "linear", 2),
)
ALL = tuple(
    (algorithm, size, optimizer, landscape, SEEDS[place % len(SEEDS)])
    for place, (algorithm, size, optimizer, landscape) in enumerate(
        itertools.product(ALGORITHMS, SIZES, OPTIMIZERS, LANDSCAPES)
    )
)
VALUES = {"beta": 0.05, "epsilon": 0.1, "rate": 0.3}
PASSES = 3
EACH, AFTER_ALL = 1e-12, 1e-9
"""Relative differences allowed after one update from its recorded state, and after all updates."""


@pytest.fixture(scope="module")
def engine(qapp: QApplication) -> QJSEngine:
    found = QJSEngine(qapp)
    evaluated(found, program())
    return found


def evaluated(engine: QJSEngine, script: str) -> QJSValue:
    """Return the value of a script, which must not raise an error."""
    result: Any = engine.evaluate(script)  # the stubs say a tuple
    assert isinstance(result, QJSValue) and not result.isError(), result.toString()
    return result


def said(engine: QJSEngine, body: str) -> Any:
    """Return what the function with this ``body`` returns."""
    return json.loads(evaluated(engine, f"JSON.stringify((() => {{{body}}})())").toString())


def settings(choice: Choice) -> Settings:
    algorithm, size, optimizer, landscape, seed = choice
    chosen = settings_of(algorithm, size, optimizer, landscape, **VALUES)
    return chosen.replace({"seed": seed, "learner.mu": PASSES})


def written(choice: Choice) -> str:
    names = ("algorithm", "size", "optimizer", "landscape", "seed")
    return json.dumps(dict(zip(names, choice, strict=True)) | VALUES | {"passes": PASSES})


def recorded(choice: Choice) -> Iterator[Step]:
    return iter(learner(settings(choice)))


def array(values: np.ndarray) -> dict[str, object]:
    """Return an array as the script holds it, with three axes."""
    return {"shape": (1, 1, values.size), "data": values.ravel().tolist()}


def near(one: Any, other: Any, within: float) -> bool:
    """Return whether arrays are equal, relative to the larger of 1 and the second."""
    one, other = np.asarray(one), np.asarray(other).ravel()
    return bool(np.all(np.abs(one - other) <= within * np.maximum(1, np.abs(other))))


STATE = {"logits": "logits", "first": "adam_m", "second": "adam_v"}
"""Parts of the page's state, and their names in a record."""


def check_each_update(engine: QJSEngine, choice: Choice, updates: int) -> None:
    """Check that each update, from the state that was recorded before it, is the recorded one."""
    state = "start()"
    paid = landscape_rewards(settings(choice).bandit)
    for step in itertools.islice(recorded(choice), updates):
        body = (
            f"const u = updated({state}, {written(choice)}), plain = (x) => Array.from(x.data), b = u.batch;"
            "return {tokens: plain(b.tokens), rewards: plain(b.rewards), advantage: plain(b.advantage),"
            "cards: cards(u), passes: u.passes.map((p) => [p.ratio, p.clipped, p.divergence, p.push].map(plain)),"
            "state: [u.state.logits, u.state.first, u.state.second, u.state.steps].map(plain)}"
        )
        found = said(engine, body)
        assert found["tokens"] == step.tokens[:, 0].tolist()
        assert found["rewards"] == step.rewards.tolist()
        assert near(found["advantage"], recompute.advantage(step), EACH)
        for place, (ratio, clipped, divergence, push) in enumerate(found["passes"]):
            terms, gradient = recompute.terms(step, place), recompute.token_gradient(step, place)
            assert near(ratio, terms.ratio, EACH)
            assert clipped == terms.clipped.ravel().tolist()
            assert near(divergence, terms.kl, EACH)
            assert near(push, sum(part for part in gradient if part is not None), EACH)
        numbers, after = metrics(step), step.distribution(PASSES)
        assert after is not None
        expected = found["cards"].pop("reward")
        assert expected == pytest.approx(float(np.exp(after[0]) @ paid), rel=EACH)
        assert found["cards"] == pytest.approx({name: numbers[name] for name in found["cards"]}, rel=EACH, abs=EACH)
        for name, values in zip((*STATE.values(), "adam_steps"), found["state"], strict=True):
            assert near(values, step.resume[name], EACH), name
        parts = {name: array(step.resume[own][None]) for name, own in (STATE | {"steps": "adam_steps"}).items()}
        state = json.dumps({"step": step.step, **parts})


def check_all_updates(engine: QJSEngine, choice: Choice) -> None:
    """Check that all updates draw the recorded actions, and where they end."""
    drawn, logits = said(
        engine,
        f"const drawn = [], choice = {written(choice)}; let state = start();"
        f"while (state.step < {UPDATES}) {{ const u = updated(state, choice); state = u.state;"
        "drawn.push(Array.from(u.batch.tokens.data)); } return [drawn, Array.from(state.logits.data)]",
    )
    steps = list(itertools.islice(recorded(choice), UPDATES))
    assert drawn == [step.tokens[:, 0].tolist() for step in steps]
    assert near(logits, steps[-1].resume["logits"], AFTER_ALL)


@pytest.mark.parametrize("choice", FEW, ids=lambda choice: choice[0])
def test_each_update_is_the_recorded_one(engine: QJSEngine, choice: Choice) -> None:
    check_each_update(engine, choice, 6)


@pytest.mark.parametrize("choice", FEW, ids=lambda choice: choice[0])
def test_two_hundred_updates_draw_the_recorded_actions(engine: QJSEngine, choice: Choice) -> None:
    check_all_updates(engine, choice)


@pytest.mark.long
@pytest.mark.parametrize("choice", ALL, ids=lambda choice: " ".join(map(str, choice)))
def test_every_choice_is_the_recorded_one(engine: QJSEngine, choice: Choice) -> None:
    check_each_update(engine, choice, 20)
    check_all_updates(engine, choice)


def test_every_number_of_the_record_is_exact(engine: QJSEngine) -> None:
    drawn = said(engine, "return [1, 63, 64, 200].map((step) => Array.from(uniforms(2, step, 16).data))")
    numbers = uniforms(2)
    assert drawn == [numbers[16 * step : 16 * step + 16].tolist() for step in (1, 63, 64, 200)]


@pytest.fixture(scope="module")
def page(qapp: QApplication) -> str:
    data = simulator_page()
    assert len(data) < LARGEST == 300_000
    return data.decode("utf-8")


def test_the_page_runs_its_own_script_and_nothing_else(page: str) -> None:
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None and f"script-src &#x27;sha256-{allowed}&#x27;" in policy[1]
    assert "unsafe" not in policy[1]
    assert not re.search(r"\beval\(|new Function|setTimeout\(\"|https?://(?!www\.w3\.org/2000/svg)|import\(", script)


def test_every_control_has_a_label_and_one_place_speaks(page: str) -> None:
    tags = Page(page).tags
    labelled = {attrs["for"] for tag, attrs in tags if tag == "label"}
    controls = {attrs["id"] for tag, attrs in tags if tag in ("select", "input")}
    assert controls == labelled >= {*SLIDERS, "algorithm", "pass"}
    assert [attrs["id"] for _, attrs in tags if attrs.get("role") == "status" or "aria-live" in attrs] == ["said"]
    assert {f"card-{name}" for name in CARDS} <= {attrs.get("id") for _, attrs in tags}
    ids = [attrs["id"] for _, attrs in tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    drawn = [attrs for tag, attrs in tags if tag == "svg"]
    assert all(attrs["role"] == "img" and ("aria-label" in attrs or "aria-labelledby" in attrs) for attrs in drawn)


def test_sliders_stop_at_the_settings_that_an_algorithm_begins_with() -> None:
    for name in ALGORITHMS:
        own = settings_of(name, 8)
        for slider, (path, values) in SLIDERS.items():
            if slider != "epsilon" or own.objective.surrogate != "log_prob":
                assert own.get(path) in values, (name, path)


def test_a_recorded_array_has_no_numbers_to_decide_by() -> None:
    x = Recording().array("x", (1, 2))
    assert not is_zero(x)
    with pytest.raises(TypeError, match="has no numbers"):
        bool(array_namespace(x).max(x) > 0)
    with pytest.raises(TypeError, match="is not recorded"):
        x[0]


def test_a_recording_leaves_out_what_no_result_needs() -> None:
    def compute(x: Any, y: Any) -> dict[str, Any]:
        xp = array_namespace(x)
        xp.exp(y)
        return {"z": xp.where(x > 0.5, -x, 1e-12), "same": -x}

    text = function(compute, {"x": (3,), "y": (3,)})
    assert text == "({x})=>{const v1=greater(x,0.5),v2=negative(x),v3=where(v1,v2,1e-12);return{z:v3,same:v2}}"


def test_the_command_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "simulator.html"
    assert main(["--simulator", "--lesson", "5", "--out", str(path)]) == 2
    assert main(["--simulator", "--updates", "3", "--out", str(path)]) == 2
    assert "--updates is for a run" in capsys.readouterr().err
    assert main(["--simulator", "--out", str(path)]) == 0
    assert "GRPO simulator" in path.read_text("utf-8")


@pytest.mark.own_window
def test_the_menu_writes_it(driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "simulator.html"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *arguments: (str(target), ""))
    driver.program.actions["export_simulator"].trigger()
    driver.qtbot.waitUntil(target.exists, timeout=30_000)
    driver.qtbot.waitUntil(lambda: not driver.program.exporter.busy, timeout=30_000)


@pytest.mark.skipif(shutil.which("chromium") is None, reason="without Chromium the page is not opened in a browser")
def test_a_browser_opens_it(page: str, tmp_path: Path) -> None:
    opened = opened_in_chromium(page.encode("utf-8"), tmp_path)
    assert re.search(r'id="card-entropy"[^>]*>2\.303 nats<', opened)
    assert len(re.findall(r'class="bar up"', opened)) == 10
