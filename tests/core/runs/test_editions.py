"""Runs and sessions of every edition of the program open in this one, and new ones say which editions read them.

``tests/data/editions`` was written by those editions: two updates of a bandit with three actions, seed 11.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import re
import sqlite3
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grpo_core import __version__, versions
from grpo_core.config import (
    LanguageTask,
    Model,
    Settings,
    described,
    folder_settings,
    language_settings,
    settings_from_json,
)
from grpo_core.config.recorded import RecordedTask
from grpo_core.config.settings import OWNERS
from grpo_core.errors import RunFileError
from grpo_core.learners import learner
from grpo_core.runs.checks import KEY
from grpo_core.runs.manifest import Manifest, SessionError, manifest_from, manifest_text
from grpo_core.runs.meta import raise_needs
from grpo_core.runs.reader import RunReader
from grpo_core.runs.session import save_session
from grpo_core.runs.writer import RunWriter
from tests.core.runs.conftest import edited, written
from tests.sessions import open_session

ROOT = Path(__file__).parents[3]
EDITIONS = Path(__file__).parents[2] / "data" / "editions"
RUNS = sorted(path.parent.name for path in EDITIONS.glob("*/run.grpo.gz"))
SESSIONS = sorted(path.parent.name for path in EDITIONS.glob("*/class.grposession"))
SETTINGS = Settings().replace(
    {"learner.group_size": 2, "learner.mu": 1, "task.actions": 3, "task.peak": 2.0, "seed": 11}
)
UNCHECKED = f"DELETE FROM meta WHERE key = '{KEY}'"
EVERY = (
    SETTINGS,
    Settings(),
    language_settings(),
    folder_settings("models/small"),
    Settings(task=RecordedTask()),
    Settings(task=RecordedTask(source="TRL 1.16", reward_names=("right",)), objective=SETTINGS.objective),
    Settings(task=LanguageTask(), model=Model(layers=3)),
)


@pytest.fixture
def now(tmp_path: Path) -> Path:
    """A run of two updates, written with this version of the program."""
    return written(tmp_path / "now.grpo", islice(learner(SETTINGS), 2), SETTINGS, origin=None, title="First steps")


def said(path: Path, key: str) -> Any:
    with closing(sqlite3.connect(path)) as connection:
        row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return row and row[0]


@pytest.mark.parametrize("edition", RUNS)
def test_a_run_of_every_edition_opens_and_goes_on_as_it_did(edition: str, tmp_path: Path) -> None:
    path = tmp_path / "run.grpo"
    path.write_bytes(gzip.decompress((EDITIONS / edition / "run.grpo.gz").read_bytes()))
    with RunReader.open(path) as reader:
        assert (reader.meta.title, reader.meta.settings, reader.last) == ("First steps", SETTINGS, 2)
        last = reader.step(2)
        rewards = reader.series("reward_mean")
    own = list(islice(learner(SETTINGS), 3))
    np.testing.assert_array_equal(last.tokens, own[1].tokens)
    np.testing.assert_allclose(last.logp, own[1].logp, rtol=1e-12)
    np.testing.assert_allclose(rewards[-2:], [step.rewards.mean() for step in own[:2]])
    with RunWriter.open(path) as writer:
        writer.append(next(learner(SETTINGS, resume=last)))
    with RunReader.open(path) as reader:
        np.testing.assert_allclose(reader.step(3).logp, own[2].logp, rtol=1e-12)


@pytest.mark.parametrize("edition", SESSIONS)
def test_a_session_of_every_edition_opens(edition: str, tmp_path: Path) -> None:
    manifest, runs = open_session(EDITIONS / edition / "class.grposession", tmp_path)[:2]
    assert (manifest.notes, manifest.step, manifest.settings) == ("Page 3", 2, SETTINGS)
    with RunReader.open(runs[0]) as reader:
        assert reader.last == 2


@pytest.mark.parametrize("settings", EVERY)
def test_files_hold_what_differs_from_the_defaults_and_read_back_the_same(settings: Settings) -> None:
    assert settings_from_json(settings.stored()) == settings
    assert settings_from_json(settings.to_json()) == settings
    stored = json.loads(settings.stored())
    for part, values in stored.items():
        for name in values if isinstance(values, dict) else ():
            kind = part == "task" and name in ("problem", "source")
            usual = type(getattr(settings, part))()
            assert kind or getattr(settings.get(part), name) != getattr(usual, name)


def test_a_run_of_the_defaults_stores_no_setting() -> None:
    assert Settings().stored() == "{}"
    assert Settings().needs == versions.FIRST


def test_the_least_version_is_that_of_the_newest_setting_in_use() -> None:
    assert SETTINGS.needs == language_settings().needs == "0.1.0"
    assert folder_settings("models/small").needs == Settings(task=RecordedTask()).needs == "0.2.0"


def test_a_file_says_the_least_version_that_reads_it(now: Path) -> None:
    assert (said(now, "needs"), said(now, "version")) == ("0.1.0", __version__)
    with RunReader.open(now) as reader:
        saved = save_session(now.with_name("now.grposession"), Manifest(settings=reader.meta.settings), [now])
    assert json.loads(manifest_text(saved))["needs"] == "0.1.0"


def test_the_least_version_rises_and_never_falls(now: Path) -> None:
    for needed, noted in (("0.2.0", "0.2.0"), ("0.1.0", "0.2.0"), ("0.10.0", "0.10.0")):
        with closing(sqlite3.connect(now)) as connection, connection:
            raise_needs(connection, needed)
        assert said(now, "needs") == noted


@pytest.mark.parametrize(
    ("stored", "named"),
    [
        ('{"objective": {"zeta": 1}}', "objective.zeta"),
        ('{"objective": {"kl": "k9"}}', "objective.kl"),
        ('{"zeta": 1}', "zeta"),
    ],
)
def test_a_setting_of_a_newer_version_is_named_with_that_version(stored: str, named: str, now: Path) -> None:
    edited(now, "UPDATE meta SET value = '9.1.0' WHERE key = 'needs'", UNCHECKED)
    edited(now, "UPDATE settings SET json = ?", values=(stored,))
    with RunReader.open(now) as reader, pytest.raises(RunFileError, match=named) as raised:
        reader.step(1)
    assert "written by a newer version (9.1.0)" in str(raised.value)
    edited(now, "UPDATE meta SET value = ? WHERE key = 'settings'", values=(stored,))
    with pytest.raises(RunFileError, match=r"written by a newer version \(9\.1\.0\)"):
        RunReader.open(now)


def test_the_same_of_a_session(tmp_path: Path) -> None:
    stored = json.loads(manifest_text(Manifest(settings=SETTINGS)))
    stored |= {"version": "9.1.0", "settings": {"objective": {"zeta": 1}}}
    with pytest.raises(SessionError, match=r"objective\.zeta.*written by a newer version \(9\.1\.0\)"):
        manifest_from(json.dumps(stored).encode(), "class.grposession")


def test_a_setting_that_no_version_has_is_not_said_to_be_newer(now: Path) -> None:
    edited(now, "UPDATE settings SET json = '{\"zeta\": 1}'", UNCHECKED)
    with RunReader.open(now) as reader, pytest.raises(RunFileError, match="zeta") as raised:
        reader.step(1)
    assert "newer" not in str(raised.value)


def test_a_default_never_changes_for_files_leave_it_out() -> None:
    """``defaults.json`` has every default as it was first released. A release adds those of its new settings."""
    stored = json.loads((EDITIONS / "defaults.json").read_text())
    now = {
        f"{owner.__name__}.{field.name}": json.loads(json.dumps(field.default))
        for owners in OWNERS.values()
        for owner in owners
        for field in dataclasses.fields(owner)
        if "about" in field.metadata
        and (f"{owner.__name__}.{field.name}" in stored or field.metadata["about"].since != __version__)
    }
    assert now == stored


def test_a_new_setting_or_choice_moves_the_version() -> None:
    """Copies with the same version read the same files. A release adds its settings to ``defaults.json``, and its
    choices to ``choices.json``.
    """
    versions_listed = re.findall(r"^## (\d[\d.]*)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    released = json.loads((EDITIONS / "defaults.json").read_text()).keys()
    choices = json.loads((EDITIONS / "choices.json").read_text())
    for owners in OWNERS.values():
        for owner in owners:
            for name, about in described(owner):
                path = f"{owner.__name__}.{name}"
                if path not in released:
                    assert versions.numbers(about.since) > versions.numbers(versions_listed[0]), path
                for choice in {*about.choices} - {*choices.get(path, about.choices)}:
                    since = dict(about.choices_since).get(choice, "")
                    assert versions.numbers(since) > versions.numbers(versions_listed[0]), f"{path}: {choice}"
                assert {about.since, *dict(about.choices_since).values()} <= {*versions_listed, __version__}, path


def test_what_came_later_than_this_version_is_nothing() -> None:
    for owners in OWNERS.values():
        for owner in owners:
            for name, about in described(owner):
                later = [about.since, *(version for _, version in about.choices_since)]
                assert not any(map(versions.is_newer, later)), name
                assert {choice for choice, _ in about.choices_since} <= set(about.choices)


@pytest.mark.parametrize(
    ("older", "newer"), [("0.1", "0.1.1"), ("0.9.0", "0.10.0"), ("", "0.1.0"), ("what", "0.1.0"), ("0.3.0", "1")]
)
def test_versions_are_compared_as_numbers(older: str, newer: str) -> None:
    assert versions.newest(older, newer) == versions.newest(newer, older) == newer
