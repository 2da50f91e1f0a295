"""Damaged files of every kind that the program reads: a message or a result, never a crash or another exception."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from app.settings.preferences import Preferences, load_preferences
from grpo_core import learners
from grpo_core.config import Settings, settings_from_json
from grpo_core.errors import GrpoError, RunFileError, SettingsError
from grpo_core.metrics import METRICS
from grpo_core.runs.run_file import RunReader, RunWriter

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]
ROUNDS = 1500


def damaged(content: bytes, chance: random.Random) -> bytes:
    """Return ``content`` with bytes flipped, a stretch cut out, doubled or replaced, or the end missing."""
    data = bytearray(content)
    kind = chance.randrange(5)
    start = chance.randrange(len(data))
    stop = min(start + chance.randrange(1, 400), len(data))
    if kind == 0:
        for _ in range(chance.randrange(1, 30)):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    elif kind == 1:
        del data[start:stop]
    elif kind == 2:
        data[start:start] = data[start:stop]
    elif kind == 3:
        data[start:stop] = chance.randbytes(stop - start)
    else:
        del data[start:]
    return bytes(data)


def test_a_damaged_run_file_is_read_as_far_as_it_goes_or_says_why_not(tmp_path: Path) -> None:
    path = tmp_path / "run.grpo"
    learner = learners.learner(Settings())
    with RunWriter.create(path, Settings()) as writer:
        for _ in range(30):
            writer.append(next(learner))
    whole, chance, refused = path.read_bytes(), random.Random(1), 0
    for _ in range(ROUNDS):
        path.write_bytes(damaged(whole, chance))
        try:
            with RunReader.open(path) as reader:
                for number in range(reader.first, reader.last + 1):
                    reader.step(number)
                for name in METRICS:
                    reader.series(name)
                reader.settings_changes()
        except (RunFileError, GrpoError):
            refused += 1
    assert 0 < refused <= ROUNDS


def test_damaged_preferences_heal(tmp_path: Path) -> None:
    path, chance = tmp_path / "preferences.json", random.Random(2)
    whole = b'{"theme": "dark", "scale": 1.5, "speed": null, "recent": ["a", "b"], "layout": "Compare", "kept_runs": 7}'
    for _ in range(ROUNDS):
        path.write_bytes(damaged(whole, chance))
        preferences, said = load_preferences(path)
        assert isinstance(preferences, Preferences)
        assert all(sentence.endswith(".") for sentence in said)


def test_damaged_settings_name_what_is_wrong() -> None:
    whole, chance, refused = Settings().to_json().encode(), random.Random(3), 0
    for _ in range(ROUNDS):
        try:
            settings_from_json(damaged(whole, chance))
        except SettingsError as error:
            refused += bool(error.field)
    assert refused > ROUNDS / 2
