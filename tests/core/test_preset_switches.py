"""Presets as settings: recognised, written, changed into one another."""

from __future__ import annotations

import re
from pathlib import Path

from grpo_core.config import PRESETS, Settings, flat, settings_from_json
from grpo_core.config.presets import preset_of


def test_every_preset_says_where_it_comes_from_and_has_its_numbers_tested() -> None:
    written = Path(__file__).with_name("test_presets.py").read_text(encoding="utf-8")
    for name, preset in PRESETS.items():
        assert preset.source, name
        assert f'"{name}"' in written, name
        assert not preset.not_covered or preset.not_covered.endswith("."), name


def test_every_preset_is_in_the_list_of_algorithms() -> None:
    listed = (Path(__file__).parents[2] / "docs" / "algorithms.md").read_text(encoding="utf-8")
    presets = listed.partition("## Presets")[2].partition("\n## ")[0]
    assert [line.split(" | ")[0][2:] for line in presets.splitlines() if line.startswith("| ")][1:] == list(PRESETS)
    settings = listed.partition("## Names for a setting")[2].partition("\n## ")[0]
    for path in re.findall(r"`((?:objective|learner)\.\w+)`", settings):
        assert path in flat(Settings()), path


def test_every_preset_survives_the_way_to_json() -> None:
    for name, preset in PRESETS.items():
        settings = preset.applied_to(Settings())
        assert settings_from_json(settings.to_json()) == settings, name


def test_a_preset_is_recognised_by_its_switches() -> None:
    same = {"BNPO": "GRPO (TRL 1.16 defaults)"}  # one micro-batch a pass: the same switches
    for landscape in ("single_peak", "length"):
        for passes in (1, 3):
            start = Settings().replace({"task.landscape": landscape, "learner.group_size": 5, "seed": 3})
            for name, preset in PRESETS.items():
                settings = preset.applied_to(start).replace({"learner.mu": passes})
                assert preset_of(settings) == same.get(name, name)
                assert settings.learner.group_size == 5


def test_a_mixture_is_no_preset() -> None:
    assert preset_of(Settings().replace({"objective.beta": 0.123})) is None
    assert preset_of(PRESETS["DAPO"].applied_to(Settings()).replace({"learner.resample_dead": False})) is None


def test_a_preset_fixes_the_passes_only_where_its_source_does() -> None:
    start = Settings().replace({"learner.mu": 6})
    assert PRESETS["GRPO (DeepSeekMath)"].applied_to(start).learner.mu == 1
    assert PRESETS["GSPO"].applied_to(start).learner.mu == 6


def test_changing_from_one_preset_to_any_other_leaves_nothing_behind() -> None:
    for first in PRESETS.values():
        for second in PRESETS.values():
            assert second.applied_to(first.applied_to(Settings())).replace({"learner.mu": 1}) == second.applied_to(
                Settings()
            ).replace({"learner.mu": 1})
