"""Rows of other people's packages: found cheaply, named as theirs, refused with a sentence if they are wrong."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grpo_core import parts, plugins, recompute
from grpo_core.acting import acting_fields
from grpo_core.bandit.tasks import TASKS
from grpo_core.child.start import Limits, command, start
from grpo_core.config import BanditTask, Objective, Settings, about, settings_from_json
from grpo_core.config.value_names import headed
from grpo_core.errors import SettingsError
from grpo_core.experiments.race import entered
from grpo_core.explain import Numbers, explain_from
from grpo_core.export.script import step_script
from grpo_core.foreign.walls import readable
from grpo_core.learners import origin
from grpo_core.surrogates import SURROGATES, dppo
from grpo_core.testing import checks
from grpo_core.testing.surrogates import TASK
from grpo_core.testing.tasks import CHECKS as TASK_CHECKS
from grpo_core.testing.updates import every_quantity, trained_with

Installed = Callable[..., None]
SOUND = "from grpo_core.surrogates import SURROGATES\nROW = SURROGATES['{name}']\n"


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installed:
    """A function that installs a package: name, source of its module, lines of its entry points."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv(plugins.ENVIRONMENT)

    def installed(name: str, source: str, *lines: str, group: str = plugins.GROUP) -> None:
        module = name.replace("-", "_")
        (tmp_path / f"{module}.py").write_text(source, "utf-8")
        info = tmp_path / f"{module}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n", "utf-8")
        (info / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines, ""]), "utf-8")
        monkeypatch.delitem(sys.modules, module, raising=False)

    return installed


def test_a_row_is_found_and_called_by_the_name_of_its_package(install: Installed) -> None:
    install("good-one", SOUND.format(name="sapo"), "surrogate.soft = good_one:ROW")
    install("other-group", SOUND.format(name="sapo"), "surrogate.soft = other_group:ROW", group="some.group")
    assert SURROGATES["good-one.soft"] is SURROGATES["sapo"] and list(SURROGATES)[-1] == "good-one.soft"
    assert about(Objective, "surrogate").choices == (*SURROGATES,)
    objective = Objective(surrogate="good-one.soft")
    assert acting_fields(objective) == acting_fields(Objective(surrogate="sapo"))
    settings = Settings(objective=objective)
    assert settings_from_json(settings.stored()) == settings
    assert headed("good-one.soft") == "good-one.soft"
    assert plugins.described() == "with packages of others: good-one 1.2 (surrogate soft)"
    assert entered(Settings(), "good-one.soft").objective.surrogate == "good-one.soft"
    assert plugins.refusals() == []


WRONG = {
    "of-no-kind": ("", "colour.red = of_no_kind:ROW", "there is no kind of row “colour”; there are surrogate, task"),
    "badly-named": ("ROW = 1", "surrogate.Bad_Name = badly_named:ROW", "its name must be a kind, a dot, and words"),
    "not-there": ("", "surrogate.a = not_there.deeper:ROW", "ModuleNotFoundError: No module named 'not_there.deeper'"),
    "no-row": ("", "surrogate.a = no_row:ROW", "AttributeError: module 'no_row' has no attribute 'ROW'"),
    "that-fails": ("raise KeyError('x')", "surrogate.a = that_fails:ROW", "KeyError: 'x'"),
    "that-leaves": ("raise SystemExit(3)", "surrogate.a = that_leaves:ROW", "SystemExit: 3"),
    "of-another-type": ("ROW = 'clip'", "surrogate.a = of_another_type:ROW", "it is of type str, not Surrogate"),
    "task-or-not": (SOUND.format(name="clip"), "task.a = task_or_not:ROW", "it is of type Surrogate, not LongTask"),
    "strange-knob": (
        SOUND.format(name="sapo") + "import dataclasses\nROW = dataclasses.replace(ROW, knobs=('warmth',))",
        "surrogate.a = strange_knob:ROW",
        "the objective has no setting “warmth”",
    ),
}


@pytest.mark.parametrize("package", WRONG)
def test_a_wrong_row_is_left_out_and_a_sentence_names_package_and_row(install: Installed, package: str) -> None:
    source, line, why = WRONG[package]
    install(package, source, line)
    install("good-two", SOUND.format(name="sapo"), "surrogate.soft = good_two:ROW")
    entry = line.partition(" = ")[0]
    (said,) = plugins.refusals()
    assert said.startswith(f"The row “{entry}” of the package “{package}” is left out: {why}") and said.endswith(".")
    assert list(SURROGATES)[len(SURROGATES.own) :] == ["good-two.soft"] and list(TASKS) == ["length", "chain"]
    if entry.startswith("surrogate"):
        with pytest.raises(SettingsError, match="is left out"):
            Objective(surrogate=f"{package}.{entry.partition('.')[2]}")
        with pytest.raises(LookupError, match="is left out"):
            checks(package)


def test_damaged_metadata_is_a_sentence(install: Installed, tmp_path: Path) -> None:
    install("damaged", "", "surrogate.a")
    (said,) = plugins.refusals()
    assert "of the package “damaged” is left out" in said
    (tmp_path / "damaged-1.2.dist-info" / "entry_points.txt").write_bytes(b"[grpo_lab.parts]\n\xff\xfe = a:b\n")
    os.environ.pop(plugins.ENVIRONMENT)
    (said,) = plugins.refusals()
    assert "of the package “damaged” is left out" in said


def test_a_package_that_is_gone_is_named(install: Installed) -> None:
    install("good-three", SOUND.format(name="sapo"), "surrogate.soft = good_three:ROW")
    for name, why in {
        "gone.soft": "it belongs to the package “gone”, which is not installed",
        "good-three.hard": "the installed package “good-three” does not contain it",
    }.items():
        with pytest.raises(SettingsError, match=f"surrogate cannot be “{name}”: {why}"):
            Objective(surrogate=name)
    with pytest.raises(SettingsError, match="“gone”, which is not installed"):
        BanditTask(landscape="gone.lock")
    with pytest.raises(KeyError):
        SURROGATES["gone.soft"]
    with pytest.raises(SettingsError, match=r"one of clip, .*, log_prob, good-three\.soft"):
        Objective(surrogate="klip")
    with pytest.raises(LookupError, match="No installed package “gone”"):
        checks("gone")


def test_an_executable_takes_no_packages_and_says_so(install: Installed, monkeypatch: pytest.MonkeyPatch) -> None:
    install("good-four", SOUND.format(name="sapo"), "surrogate.soft = good_four:ROW")
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert plugins.offers() == () and "good-four.soft" not in SURROGATES
    assert plugins.described() == "packages of others cannot be added to this executable"


def test_an_empty_variable_switches_all_packages_off(install: Installed, monkeypatch: pytest.MonkeyPatch) -> None:
    install("good-five", SOUND.format(name="sapo"), "surrogate.soft = good_five:ROW")
    monkeypatch.setenv(plugins.ENVIRONMENT, "")
    assert plugins.offers() == () and plugins.described() == ""


def test_a_process_that_reads_foreign_files_can_read_the_code_of_packages(install: Installed, tmp_path: Path) -> None:
    install("good-seven", SOUND.format(name="sapo"), "surrogate.soft = good_seven:ROW", "surrogate.a = not_here.b:ROW")
    assert tmp_path / "good_seven.py" in {*readable(tmp_path / "some.jsonl")}


def test_a_child_process_is_told_and_does_not_look_itself(install: Installed) -> None:
    install("good-six", SOUND.format(name="sapo"), "surrogate.soft = good_six:ROW")
    assert plugins.ENVIRONMENT not in os.environ
    command(start, 0, Limits())  # type: ignore[arg-type] # any function of a module
    told = json.loads(os.environ[plugins.ENVIRONMENT])
    assert told == [["good-six", "1.2", "surrogate.soft", "good_six:ROW"]]
    code = "from grpo_core import plugins; print(*(offer.id for offer in plugins.offers()))"
    path = str(Path(plugins.__file__).parents[1])  # without the package
    said = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    assert said.stdout.split() == ["good-six.soft"]


def test_a_search_that_finds_nothing_reads_no_metadata(tmp_path: Path) -> None:
    code = "import sys; from grpo_core import plugins; print(plugins.offers(), 'importlib.metadata' in sys.modules)"
    environment = {name: value for name, value in os.environ.items() if name != plugins.ENVIRONMENT}
    said = subprocess.run(
        [sys.executable, "-c", code],
        env={**environment, "PYTHONPATH": str(Path(plugins.__file__).parents[1])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.split() == ["()", "False"]


def test_every_kind_has_a_table_and_its_own_rows_are_valid() -> None:
    for kind in plugins.kinds():
        table = plugins.table(kind)
        assert [name for name, row in table.items() if table.fault(row)] == [] and len(table) == len(list(table))
    if parts.names() == tuple(parts.PARTS):
        assert set(plugins.kinds()) == {"surrogate", "task", "reader", "check", "claim", "lesson"}


@pytest.mark.parametrize("name", ["length", "chain"])
@pytest.mark.parametrize("check", TASK_CHECKS)
def test_our_tasks_pass_the_checks_of_a_task(name: str, check: str) -> None:
    TASK_CHECKS[check](name)


WRONG_PULL = """
import dataclasses
from grpo_core.surrogates import SURROGATES
S = SURROGATES["sapo"]
ROW = dataclasses.replace(S, pull=lambda b, upstream: 1.01 * S.pull(b, upstream))
"""


def test_the_checks_find_a_wrong_pull_and_a_copy_of_a_formula(install: Installed) -> None:
    install("wrong-pull", WRONG_PULL, "surrogate.soft = wrong_pull:ROW")
    every = checks("wrong-pull")
    for name in ("pull_equals_finite_differences-token", "terms_lead_to_numbers"):
        with pytest.raises(AssertionError):
            every[f"wrong-pull.soft-{name}"]()
    every["wrong-pull.soft-settings_are_stored"]()

    assert len(every) >= 20


def test_a_surrogate_of_the_program_in_a_package_of_its_own_computes_the_same_bits(install: Installed) -> None:
    """The file of DPPO as it is, in a package: it needs nothing but the entry point."""
    install("twin", Path(dppo.__file__).read_text("utf-8"), "surrogate.dppo = twin:SURROGATE")
    changes = {**TASK, "objective__clip_low": 0.05, "objective__clip_high": 0.05, "learner__mu": 3}
    ran, twin = (trained_with(4, objective__surrogate=name, **changes) for name in ("dppo", "twin.dppo"))
    assert SURROGATES["twin.dppo"].value is not dppo.SURROGATE.value
    for name in ("tokens", "logp", "dist_logp"):
        np.testing.assert_array_equal(getattr(ran, name), getattr(twin, name))
    assert recompute.terms(ran, 2).clipped.any()
    for passed in range(3):
        one, other = ([Numbers(step).terms(passed), recompute.token_gradient(step, passed)[0]] for step in (ran, twin))
        assert compared_bits(one) == compared_bits(other)
    quantities = list(every_quantity(ran))
    explained = [[explain_from(Numbers(step), q) for q in quantities] for step in (ran, twin)]
    for one, other in zip(*explained, strict=True):
        assert (one.latex_values, one.note, one.agrees) == (other.latex_values, other.note, True)
    scripts = [step_script(step, origin(step.settings)).splitlines() for step in (ran, twin)]
    assert [[line for line in script if not line.startswith("#")] for script in scripts[:1]] == [
        [line for line in script if not line.startswith("#")] for script in scripts[1:]
    ]
    for name, check in checks("twin").items():
        if "terms_lead_to_numbers" not in name:  # its terms are not its own: they are those of DPPO
            check()


def compared_bits(values: list[Any]) -> list[bytes]:
    terms, gradient = values
    arrays = [getattr(terms, field.name) for field in dataclasses.fields(terms)]
    return [np.asarray(x).tobytes() for x in (*arrays, gradient) if x is not None]
