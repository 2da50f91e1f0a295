"""Settings: described, checked, changed."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest

from grpo_core.config import (
    About,
    BanditTask,
    LanguageTask,
    Learner,
    Model,
    Objective,
    Optimizer,
    Settings,
    about,
    described,
    language_settings,
)
from grpo_core.config.settings import flat
from grpo_core.errors import SettingsError

PARTS = {"objective": Objective, "learner": Learner, "optimizer": Optimizer, "task": BanditTask, "model": Model}
CLASSES = (*PARTS.values(), LanguageTask, Settings)
DESCRIBED = [(cls, name, rule) for cls in CLASSES for name, rule in described(cls)]


def test_every_setting_is_described() -> None:
    for cls in CLASSES:
        names = {f.name for f in dataclasses.fields(cls)} - (set(PARTS) if cls is Settings else set())
        assert {name for name, _ in described(cls)} == names
    assert all(rule.named.split().count(rule.symbol) == (rule.symbol != "") for _, _, rule in DESCRIBED), "symbol twice"


@pytest.mark.parametrize(("cls", "name", "rule"), DESCRIBED)
def test_a_description_is_complete(cls: type, name: str, rule: About) -> None:
    assert rule.help.endswith(".")
    assert rule.help[0].isupper()
    assert "!" not in rule.help
    assert rule.title
    assert rule.allowed
    if rule.usual is not None:
        assert rule.low <= rule.usual[0] < rule.usual[1] <= rule.high
        assert not (rule.logarithmic and rule.usual[0] <= 0)
    default = getattr(cls(), name)
    if not rule.choices and not rule.text and not isinstance(default, (bool, tuple)):
        assert math.isfinite(rule.low)
        assert math.isfinite(rule.high)
    assert rule.optional or default is not None


def test_a_description_is_found_by_name() -> None:
    assert about(Objective, "beta").symbol == "β"
    with pytest.raises(KeyError):
        about(Objective, "betta")


def test_an_error_says_what_is_allowed() -> None:
    with pytest.raises(SettingsError, match=r"beta cannot be -1: it must be a number from 0 to 1000\."):
        Objective(beta=-1)
    with pytest.raises(SettingsError, match="one of sgd, adam"):
        Optimizer(kind="momentum")
    with pytest.raises(SettingsError, match=r"above 0, at most 1e\+06, or nothing"):
        Objective(dual_clip=0)


def test_replace_changes_several_paths_at_once() -> None:
    changed = Settings().replace(
        {"objective.baseline": "given", "learner.critic": True, "seed": 9, "objective.beta": 0.5}
    )
    assert (changed.objective.baseline, changed.objective.beta) == ("given", 0.5)
    assert changed.get("learner.critic") is True
    assert changed.get("seed") == 9
    assert set(Settings().differences(changed)) == {"objective.baseline", "objective.beta", "learner.critic", "seed"}
    # an entire part and one of its fields together
    both = Settings().replace({"objective.clip_low": 0.1, "objective": Objective(beta=0.7)})
    assert both.objective == Objective(beta=0.7, clip_low=0.1)


@pytest.mark.parametrize("path", ["objective.beta", "learner.mu", "optimizer.learning_rate", "task.peak", "seed"])
def test_replace_names_the_path_that_was_wrong(path: str) -> None:
    with pytest.raises(SettingsError) as error:
        Settings().replace({path: -1, "objective.clip_low": 0.1})
    assert error.value.field == path


@pytest.mark.parametrize("path", ["objective.betta", "objektive.beta", "sead", "objective.beta.more", ""])
def test_replace_refuses_a_path_that_does_not_exist(path: str) -> None:
    with pytest.raises(SettingsError, match="no such setting"):
        Settings().replace({path: 1})


def test_every_leaf_has_a_path() -> None:
    leaves = flat(Settings())
    assert len(leaves) + len(list(described(LanguageTask))) == len(DESCRIBED)
    assert len(flat(language_settings())) + len(list(described(BanditTask))) == len(DESCRIBED)
    assert all(Settings().get(path) == value for path, value in leaves.items())
    assert json.loads(Settings().to_json())["objective"]["beta"] == 0.04


def test_one_value_a_run_is_held_against_the_bounds_of_its_field() -> None:
    def each(*values: float) -> Any:
        return np.array(values).reshape(2, 1, 1)

    Objective(beta=each(0.0, 1e3))
    for name, bad in (("beta", -1.0), ("beta", math.nan), ("beta", math.inf), ("dual_clip", 0.0), ("clip_low", 1e7)):
        with pytest.raises(SettingsError) as error:
            Objective().replace(**{name: each(0.1, bad)})
        assert error.value.field == name


def test_a_rare_combination_earns_a_warning() -> None:
    assert Objective().warnings == ()
    assert "0.2" in Objective(surrogate="cispo").warnings[0]
    assert Objective(surrogate="cispo", clip_high=5.0).warnings == ()
    assert "geometric mean" in Objective(level="sequence").warnings[0]
    assert Objective(level="sequence", clip_low=3e-4, clip_high=4e-4).warnings == ()
    assert "k1" in Objective(kl="k1").warnings[0]
    assert Objective(kl="k1", kl_in="reward").warnings == Objective(kl="k1", beta=0.0).warnings == ()
    assert "β has no effect" in Objective(kl_in="reward", baseline="given").warnings[0]
    assert Objective(kl_in="reward", baseline="given", beta=0.0).warnings == ()
    for text in (*Objective(surrogate="cispo", kl="k1").warnings, *Objective(level="sequence").warnings):
        assert text.endswith((".", ")."))
