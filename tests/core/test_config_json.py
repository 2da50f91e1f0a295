"""Settings as JSON: round trips, and every mistake named by its path."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as run_with
from hypothesis import strategies as st

from grpo_core.config import (
    About,
    BanditTask,
    Learner,
    Objective,
    Optimizer,
    Settings,
    described,
    settings_from_json,
)
from grpo_core.errors import SettingsError

PARTS = {"objective": Objective, "learner": Learner, "optimizer": Optimizer, "task": BanditTask}


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
        part: {name: draw(value_of(cls, name, rule)) for name, rule in described(cls)} for part, cls in PARTS.items()
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
    parts: dict[str, Any] = {part: cls(**chosen[part]) for part, cls in PARTS.items()}
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
