"""Settings: described, checked, changed; as JSON they survive, and every mistake is named by its path."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as run_with
from hypothesis import strategies as st

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
    settings_from_json,
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


# -- as JSON -----------------------------------------------------------------------------------------------------------

BANDIT = {part: cls for part, cls in PARTS.items() if cls is not Model}


def value_of(cls: type, name: str, rule: About) -> st.SearchStrategy[Any]:
    default = getattr(cls(), name)
    if rule.choices:
        return st.sampled_from(rule.choices)
    if isinstance(default, bool):
        return st.booleans()
    if isinstance(default, tuple):
        return st.just(default)
    whole = isinstance(default, int) or name in ("max_tokens", "faulty_action")
    number: st.SearchStrategy[Any] = (
        st.integers(int(rule.low), int(rule.high)) if whole else st.floats(rule.low, rule.high, exclude_min=rule.above)
    )
    return st.none() | number if rule.optional else number


@st.composite
def valid_settings(draw: st.DrawFn) -> Settings:
    chosen = {
        part: {name: draw(value_of(cls, name, rule)) for name, rule in described(cls)} for part, cls in BANDIT.items()
    }
    objective, task = chosen["objective"], chosen["task"]
    if objective["surrogate"] != "clip":
        objective["dual_clip"] = None
    if None not in (cap := objective["importance_cap"], low := objective["importance_floor"]) and low >= cap:
        objective["importance_floor"] = None
    if objective["reduction"] == "constant":
        objective["max_tokens"] = objective["max_tokens"] or 1
    if objective["credit"] == "process":
        task["landscape"], objective["kl_in"] = "chain", "loss"
        objective["baseline"] = draw(st.sampled_from(("group_mean", "batch_mean", "none")))
    if objective["baseline"] == "given":
        chosen["learner"]["critic"] = True
    number = st.floats(-1e9, 1e9)
    task["custom"] = tuple(draw(st.lists(number, min_size=task["actions"], max_size=task["actions"])))
    task["levels"] = tuple(draw(st.lists(number, min_size=1, max_size=4)))
    task["bias_action"] = draw(st.integers(1, task["actions"]))
    parts: dict[str, Any] = {part: cls(**chosen[part]) for part, cls in BANDIT.items()}
    return Settings(**parts, seed=draw(st.integers(0, 2**63 - 1)))


@run_with(max_examples=40, deadline=None, derandomize=True, database=None)
@given(valid_settings())
def test_settings_survive_the_way_to_json_and_back(settings: Settings) -> None:
    again = settings_from_json(settings.to_json())
    assert again == settings
    assert again.to_json() == settings_from_json(again.to_json()).to_json()
    assert settings.differences(again) == {}


def test_a_missing_field_takes_its_default_and_a_whole_number_may_stand_for_a_float() -> None:
    assert settings_from_json("{}") == Settings()
    found = settings_from_json(b'{"objective": {"beta": 1}, "seed": 3}')
    assert found == Settings().replace({"objective.beta": 1.0, "seed": 3})
    assert isinstance(found.objective.beta, float)


BAD = [
    ('{"objective": {"beta": NaN}}', "objective.beta"),
    ('{"objective": {"beta": Infinity}}', "objective.beta"),
    ('{"objective": {"beta": -0.1}}', "objective.beta"),
    ('{"objective": {"beta": true}}', "objective.beta"),
    ('{"objective": {"beta": "0.1"}}', "objective.beta"),
    ('{"objective": {"beta": null}}', "objective.beta"),
    ('{"objective": {"beta": [0.1]}}', "objective.beta"),
    ('{"objective": {"beta": {}}}', "objective.beta"),
    ('{"objective": {"beta": 1' + "0" * 400 + "}}", "objective.beta"),
    ('{"objective": {"beta": 1e400}}', "objective.beta"),
    ('{"objective": {"dual_clip": 0}}', "objective.dual_clip"),
    ('{"objective": {"dual_clip": 3, "surrogate": "sapo"}}', "objective.dual_clip"),
    ('{"objective": {"max_tokens": 2.5}}', "objective.max_tokens"),
    ('{"objective": {"max_tokens": 0}}', "objective.max_tokens"),
    ('{"objective": {"max_tokens": true}}', "objective.max_tokens"),
    ('{"objective": {"reduction": "constant"}}', "objective.max_tokens"),
    ('{"objective": {"surrogate": "klip"}}', "objective.surrogate"),
    ('{"objective": {"surrogate": 1}}', "objective.surrogate"),
    ('{"objective": {"surrogate": ["clip"]}}', "objective.surrogate"),
    ('{"objective": {"kl_importance": 1}}', "objective.kl_importance"),
    ('{"objective": {"betta": 1}}', "objective.betta"),
    ('{"objective": {"baseline": "given"}}', "objective.baseline"),
    ('{"objective": 3}', "objective"),
    ('{"objective": null}', "objective"),
    ('{"learner": {"group_size": 2.0}}', "learner.group_size"),
    ('{"learner": {"group_size": 0}}', "learner.group_size"),
    ('{"learner": {"group_size": 1' + "0" * 400 + "}}", "learner.group_size"),
    ('{"learner": {"mu": true}}', "learner.mu"),
    ('{"optimizer": {"learning_rate": NaN}}', "optimizer.learning_rate"),
    ('{"task": {"custom": [1, 2]}}', None),  # not looked at unless the landscape is custom
    ('{"task": {"landscape": "custom", "custom": [1, 2]}}', "task.custom"),
    ('{"task": {"custom": "0123456789"}}', "task.custom"),
    ('{"task": {"custom": [NaN]}}', "task.custom"),
    ('{"task": {"custom": [true]}}', "task.custom"),
    ('{"task": {"custom": ["1"]}}', "task.custom"),
    ('{"task": {"custom": [[1]]}}', "task.custom"),
    ('{"task": {"custom": [1' + "0" * 400 + "]}}", "task.custom"),
    ('{"task": {"levels": []}}', "task.levels"),
    ('{"task": {"levels": null}}', "task.levels"),
    ('{"task": {"levels": {"1": 2}}}', "task.levels"),
    ('{"task": {"bias": 1, "bias_action": 11}}', "task.bias_action"),
    ('{"seed": -1}', "seed"),
    ('{"seed": 9223372036854775808}', "seed"),
    ('{"seed": 1.5}', "seed"),
    ('{"sead": 1}', "sead"),
    ("[]", "settings"),
    ("3", "settings"),
    ("", "settings"),
    ("{", "settings"),
    ("[" * 100_000, "settings"),
    ("1" * 10_000, "settings"),
    (b"\xff\xfe\x00", "settings"),
]


@pytest.mark.parametrize(("text", "field"), BAD, ids=lambda x: str(x)[:45])
def test_bad_json_names_the_field(text: str | bytes, field: str | None) -> None:
    if field is None:
        settings_from_json(text)
        return
    with pytest.raises(SettingsError) as error:
        settings_from_json(text)
    assert error.value.field == field
    assert str(error.value).startswith(f"{field} cannot be ")
    assert str(error.value).endswith(".")
