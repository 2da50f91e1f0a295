"""Whatever a file contains, its reader gives a result or a message. Each test has a short and a long version."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.crash.safe_mode import StartMarker
from app.settings.preferences import Preferences, load_preferences
from grpo_core.config import Model, settings_from_json
from grpo_core.lm.prompt_file import read_prompts
from grpo_core.shipped import CHECKPOINT, resource
from tests.core.runs.ways import WAYS
from tests.fuzz.damage import JSON, ODD, damaged, odd_json
from tests.fuzz.readers import (
    GOOD_ANSWER,
    GOOD_MANIFEST,
    GOOD_SETTINGS,
    compute,
    good_run,
    good_session,
    poke,
    poke_record,
    read_answer,
    read_manifest,
    read_run,
    read_session,
    sentence,
)

LONG = [pytest.mark.long, pytest.mark.timeout(1800)]
SHARES = pytest.mark.parametrize("examples", [pytest.param(15, id="short"), pytest.param(1500, id="long", marks=LONG)])
TABLES = ("meta", "layout", "settings", "step", "series", "tail", "snapshot")
PREFERENCES: dict[str, Any] = {
    "theme": "dark",
    "scale": 1.5,
    "speed": None,
    "recent": ["a", "b"],
    "layout": "Compare",
    "kept_runs": 7,
    "run_length": 200,
    "reduced_motion": True,
    "size_limit": 2.0,
    "last_run": "/a/b.grpo",
}
CSV = b'prompt,answer\n2+3=,5\n"7*8=",56\n\n1+1=,"2"\n'
JSONL = b'{"prompt": "2+3=", "answer": "5"}\n{"prompt": "1+1=", "answer": 2}\n'


def tried(examples: int, content: st.SearchStrategy[Any], check: Callable[[Any], object]) -> None:
    """Apply ``check`` to ``examples`` contents. The short version uses the same ones every day."""

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=examples < 100,
        suppress_health_check=list(HealthCheck),
    )
    @given(content)
    def one(found: Any) -> None:
        check(found)

    one()


def every_way(path: Path) -> None:
    """Open the file with the reader, the window, the writer and everything that copies it, then delete the results."""
    for way in WAYS:
        sentence(lambda way=way: way(path))  # type: ignore[misc]
    for beside in path.parent.iterdir():
        if beside.is_dir():
            shutil.rmtree(beside)
        else:
            beside.unlink()


@SHARES
def test_a_damaged_run_file(tmp_path: Path, examples: int) -> None:
    path = tmp_path / "run.grpo"

    def check(content: bytes) -> None:
        path.write_bytes(content)
        sentence(lambda: read_run(path))
        every_way(path)

    tried(examples, damaged(good_run()), check)


@SHARES
def test_a_run_file_with_odd_values_and_right_checksums(tmp_path: Path, examples: int) -> None:
    path = tmp_path / "run.grpo"
    layout = {"names": ["logp"], "formats": ["<f8"], "shapes": [[1, 2]], "offsets": [0], "itemsize": 16}
    value = ODD | st.binary(max_size=200) | odd_json(layout) | odd_json(GOOD_SETTINGS[0])
    places = st.tuples(st.sampled_from(TABLES), st.integers(0, 60), st.integers(0, 5), value)

    def check(change: tuple[str, int, int, Any]) -> None:
        poke(good_run(), path, *change)
        sentence(lambda: read_run(path))
        every_way(path)

    tried(examples, places, check)


@SHARES
def test_a_record_of_odd_numbers_under_a_right_checksum(tmp_path: Path, examples: int) -> None:
    path = tmp_path / "run.grpo"
    byte = st.sampled_from([0, 1, 127, 128, 255]) | st.integers(0, 255)
    changes = st.lists(st.tuples(st.integers(0, 20_000), byte), min_size=1, max_size=6)

    def check(given: tuple[int, list[tuple[int, int]]]) -> None:
        number, places = given
        poke_record(good_run(), path, number, places)
        sentence(lambda: compute(path, number))

    tried(examples, st.tuples(st.integers(1, 6), changes), check)


@SHARES
def test_a_kept_answer_with_odd_values(tmp_path: Path, examples: int) -> None:
    path = tmp_path / "run.grpo"
    tried(examples, odd_json(GOOD_ANSWER), lambda text: sentence(lambda: read_answer(path, text)))


@SHARES
def test_a_damaged_session(tmp_path: Path, examples: int) -> None:
    path = tmp_path / "x.grposession"

    def check(content: bytes) -> None:
        path.write_bytes(content)
        sentence(lambda: read_session(path))

    tried(examples, damaged(good_session()), check)


@SHARES
def test_a_manifest_with_odd_values(examples: int) -> None:
    tried(examples, odd_json(GOOD_MANIFEST), lambda text: sentence(lambda: read_manifest(text)))


@SHARES
def test_settings_with_odd_values(examples: int) -> None:
    odd = [odd_json(good).map(lambda text: text.encode("utf-8", "surrogatepass")) for good in GOOD_SETTINGS]
    content = st.one_of(*odd, *(damaged(json.dumps(good).encode()) for good in GOOD_SETTINGS))
    tried(examples, content, lambda found: sentence(lambda: settings_from_json(found)))


@SHARES
def test_preferences_heal(tmp_path: Path, examples: int) -> None:
    path = tmp_path / "preferences.json"

    def check(content: bytes | str) -> None:
        path.write_bytes(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)
        preferences, said = load_preferences(path)
        assert isinstance(preferences, Preferences)
        assert all(told.endswith(".") for told in said)

    tried(examples, damaged(json.dumps(PREFERENCES).encode()) | odd_json(PREFERENCES), check)


@SHARES
@pytest.mark.parametrize(("name", "good"), [("prompts.csv", CSV), ("prompts.jsonl", JSONL)], ids=["csv", "jsonl"])
def test_a_prompt_file(tmp_path: Path, name: str, good: bytes, examples: int) -> None:
    path = tmp_path / name
    row = {"prompt": "2+3=", "answer": "5", "messages": [{"role": "user", "content": "2+3="}], "choices": ["5"]}
    rows = st.lists(odd_json({**row, "reward_model": {"ground_truth": "#### 5"}}), max_size=3)
    odd = st.tuples(rows, st.booleans()).map(
        lambda drawn: (f"[{','.join(drawn[0])}]" if drawn[1] else "\n".join(drawn[0])).encode("utf-8", "surrogatepass")
    )

    def check(given: tuple[bytes, str]) -> None:
        content, checker = given
        path.write_bytes(content)
        sentence(lambda: read_prompts(path, checker=checker, longest=24))

    content = damaged(good) | odd | st.text(alphabet='0123456789+=,"\n\r\t;{}:\0é', max_size=60).map(str.encode)
    tried(examples, st.tuples(content, st.sampled_from(["exact", "number", "regex", "final"])), check)


@SHARES
def test_a_checkpoint(tmp_path: Path, examples: int) -> None:
    """Only the directory at its head can mislead the reader; the weights after it are numbers."""
    pytest.importorskip("torch")
    from grpo_core.lm.checkpoint import load
    from grpo_core.lm.model import Transformer

    whole, path, model = resource(CHECKPOINT).read_bytes(), tmp_path / "x.safetensors", Transformer(Model())
    size = 8 + int.from_bytes(whole[:8], "little")
    directory = json.loads(whole[8:size])

    def check(head: bytes | str) -> None:
        if isinstance(head, str):
            text = head.encode("utf-8", "surrogatepass")
            head = len(text).to_bytes(8, "little") + text
        path.write_bytes(head + whole[size:])
        sentence(lambda: load(model, path))

    tried(examples, damaged(whole[:size]) | odd_json(directory), check)
    for length in (0, 7, 8, size - 1, size, len(whole) - 1):
        path.write_bytes(whole[:length])
        assert sentence(lambda: load(model, path))


@SHARES
def test_the_marker_of_another_start(tmp_path: Path, examples: int) -> None:
    names = st.sampled_from(["1.start", "0.start", "-5.start", "x.start", "99999999999999999999.start", "٣.start"])

    def check(given: tuple[str, str]) -> None:
        name, content = given
        (tmp_path / name).write_bytes(content.encode("utf-8", "surrogatepass"))
        marker = StartMarker(tmp_path)
        marker.settle()
        marker.close()
        for left in tmp_path.iterdir():
            left.unlink()

    tried(examples, st.tuples(names, odd_json({"started": 1.0, "settled": False}) | JSON.map(str)), check)
