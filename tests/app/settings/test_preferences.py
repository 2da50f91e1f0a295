"""Preferences survive damage: only unreadable ones are reset; the originals are kept, and the user is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.settings.preferences import (
    LONGEST,
    MOST_TABLES,
    RECENT,
    SPEEDS,
    Preferences,
    load_preferences,
    save_preferences,
)
from grpo_core.config.fields import described
from grpo_core.errors import SettingsError
from tests.core.runs.conftest import largest_file

EDITIONS = sorted((Path(__file__).parents[2] / "data" / "editions").glob("*/preferences.json"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "preferences.json"


def test_what_is_saved_is_loaded(file: Path) -> None:
    wanted = Preferences(theme="dark", scale=1.5, speed=None, run_length=None, reduced_motion=True)
    wanted = wanted.with_recent(Path("/a/b.grpo")).replace(last_run="/a/b.grpo", layout="Mine")
    assert save_preferences(wanted, file) is None
    assert load_preferences(file) == (wanted, ())


@pytest.mark.parametrize("written", EDITIONS, ids=lambda path: path.parent.name)
def test_preferences_of_every_edition_load_without_a_word(written: Path) -> None:
    assert load_preferences(written) == (Preferences(theme="dark", scale=1.5), ())


def test_a_file_holds_what_was_chosen_and_nothing_else(file: Path) -> None:
    assert save_preferences(Preferences(theme="dark"), file) is None
    assert json.loads(file.read_text()) == {"theme": "dark"}


def test_a_missing_file_is_the_first_start_and_says_nothing(file: Path) -> None:
    assert load_preferences(file) == (Preferences(), ())


def test_each_bad_key_is_reset_alone_and_the_file_is_kept(file: Path) -> None:
    bad = {"theme": "pink", "scale": 9, "run_length": 1.5, "speed": 10, "wings": 2, "recent": ["x", 3], "kept_runs": 7}
    file.write_text(json.dumps(bad))
    preferences, said = load_preferences(file)
    assert preferences == Preferences(speed=10, kept_runs=7)
    assert len(said) == 6
    assert "“Theme” had the invalid value pink" in said[0]
    assert "wings" in said[3]
    backup = file.with_suffix(".bad.json")
    assert str(backup) in said[-1]
    assert json.loads(backup.read_text()) == bad


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[1]", b"\xff\xfe\x00", b'{"scale": ' + b"9" * 5000 + b"}", b"[" * 100_000, b" " * 1_000_001],
    ids=["empty", "cut", "list", "binary", "huge number", "deep", "too large"],
)
def test_a_damaged_file_resets_everything_with_a_sentence(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    preferences, said = load_preferences(file)
    assert preferences == Preferences()
    assert "all preferences were reset" in said[0]
    assert file.with_suffix(".bad.json").read_bytes()[:1000] == content[:1000]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=200))
def test_random_bytes_never_raise(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    preferences, _ = load_preferences(file)
    assert isinstance(preferences, Preferences)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3),
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.dictionaries(st.sampled_from([*dict(described(Preferences)), "recent", "layout", "last_run"]), JSON))
def test_any_json_gives_preferences_that_can_be_saved_again(file: Path, values: dict[str, object]) -> None:
    file.write_text(json.dumps(values))
    preferences, _ = load_preferences(file)
    assert save_preferences(preferences, file) is None
    assert load_preferences(file) == (preferences, ())


def test_a_number_too_large_for_a_float_is_reset(file: Path) -> None:
    file.write_text('{"scale": 1' + "0" * 400 + "}")
    preferences, said = load_preferences(file)
    assert preferences.scale == 1.0
    assert "“Scale” had the invalid value 1" in said[0]


def test_a_folder_that_cannot_be_written_gives_a_sentence(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    said = save_preferences(Preferences(), blocked / "preferences.json")
    assert said is not None
    assert "Preferences could not be saved" in said
    preferences, said_loading = load_preferences(blocked / "preferences.json")
    assert preferences == Preferences()
    assert "part of the path is a file" in said_loading[0]


def test_a_full_disk_leaves_the_old_file_and_no_rubbish(file: Path) -> None:
    save_preferences(Preferences(theme="dark"), file)
    with largest_file(10):
        said = save_preferences(Preferences(theme="light"), file)
    assert said is not None
    assert "larger than the system allows" in said
    assert load_preferences(file)[0].theme == "dark"
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_recent_files_are_few_and_the_newest_first() -> None:
    preferences = Preferences()
    for number in range(RECENT + 3):
        preferences = preferences.with_recent(Path(f"{number}.grpo"))
    preferences = preferences.with_recent(Path("5.grpo"))
    assert preferences.recent[:2] == ("5.grpo", f"{RECENT + 2}.grpo")
    assert len(preferences.recent) == RECENT == len(set(preferences.recent))


def test_every_offered_speed_is_allowed_and_a_bad_value_is_refused_with_words() -> None:
    for speed in SPEEDS:
        assert Preferences(speed=speed).speed == speed
    with pytest.raises(SettingsError, match=r"from 0\.8 to 2\.5"):
        Preferences(scale=3)


def test_what_the_columns_of_tables_mean_is_kept_for_the_latest_kinds_of_tables(tmp_path: Path) -> None:
    preferences = Preferences()
    for number in range(MOST_TABLES + 1):
        preferences = preferences.with_columns(f"key{number}", f"a b={number}")
    preferences = preferences.with_columns("key5", "a\ud800=reward")
    assert save_preferences(preferences, tmp_path / "preferences.json") is None
    kept, problems = load_preferences(tmp_path / "preferences.json")
    assert not problems and len(kept.tables) == MOST_TABLES
    assert [kept.columns_of(key) for key in ("key0", "key1", "key5", "key")] == ["", "a b=1", "a\ud800=reward", ""]
    for odd in ("a\0=reward", "a" * LONGEST):
        assert kept.with_columns("key5", odd).columns_of("key5") == "", "it cannot be kept"
