"""Tests of the rules for docstrings and names, and of the baseline of earlier violations, which can only decrease."""

from __future__ import annotations

import pytest

from tools.wording import Finding, check, findings, lowered, read_baseline, written_baseline

ONE = [Finding(3, "A clause hangs.")]


def said(source: str) -> list[str]:
    return [one.sentence for one in findings(source)]


@pytest.mark.parametrize(
    "first",
    [
        "What the algorithms race under, but for what is their own.",
        "How far an update is.",
        "Why a zero is zero.",
        "Which build this is.",
        "Where a formula can be broken.",
        "When the largest probability passes one half.",
        "By how much rounding moved each of ``values`` at most.",
        "By when the process has to answer.",
        "The window would take what is fresh of a run; it says so once for every bundle.",
        "A sentence that goes on in the next line;\n    it hangs there.",
        "A heading without a full stop",
        "The widget is dressed anew.",
        "Let go of the file.",
        "The place where the cursor stands.",
    ],
)
@pytest.mark.parametrize(
    "source",
    [
        '"""{first}"""\n',
        'class Name:\n    """{first}\n\n    More.\n    """\n',
        'class Name:\n    def name(self) -> None:\n        """{first}"""\n',
    ],
)
def test_a_first_line_that_is_a_riddle_is_found_wherever_it_is(source: str, first: str) -> None:
    assert len(said(source.format(first=first))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "Request the updates finished since the last bundle.",
        "Settings shared by all racers.",
        "Upper bound of each value's rounding error, same shape. It is 0 where not finite; NaN stays NaN.",
        "Whether the widget is visible.",
        "Columns, from the left:",
        "The symbol that stands for the reward, in as much room as it needs the first time that it is seen.",
        "Restore docks from a saved state.\n\n    What is hidden stays hidden; titles go.",
    ],
)
def test_plain_english_passes(text: str) -> None:
    assert said(f'def name() -> None:\n    """{text}"""\n') == []


@pytest.mark.parametrize(
    ("source", "word"),
    [
        ("def let_go() -> None: ...", "let go"),
        ("class CalmBox: ...", "calm"),
        ("class Panel:\n    def _dress(self) -> None: ...", "dress"),
        ("def fit(room: int) -> None: ...", "room"),
        ("class Panel:\n    rooms: int = 0", "rooms"),
        ("class Panel:\n    def __init__(self) -> None:\n        self.seen = 0", "seen"),
        ("STANDS = 1", "stands"),
    ],
)
def test_a_worn_word_is_found_in_every_kind_of_name(source: str, word: str) -> None:
    (sentence,) = said(source)
    assert sentence.startswith(f"“{word}”")


@pytest.mark.parametrize(
    "source", ["class StandIn: ...", "def mushroom() -> None: ...", "def f() -> None:\n    seen = set()", "UNSEEN = 1"]
)
def test_other_names_pass(source: str) -> None:
    assert said(source) == []


def test_more_than_before_is_told_with_the_line_and_less_asks_for_a_lower_count() -> None:
    assert check({"a.py": ONE, "b.py": []}, {"a.py": 1}) == []
    new = check({"a.py": ONE}, {})
    assert new == ["a.py:3: A clause hangs.", "a.py: 1 such places, and 0 were there before."]
    (fewer,) = check({"a.py": ONE}, {"a.py": 2})
    assert "--lower" in fewer
    (gone,) = check({}, {"gone.py": 2})
    assert "0 such places instead of 2" in gone


def test_a_baseline_only_falls() -> None:
    assert lowered({"a.py": 5, "b.py": 1, "new.py": 1}, {"a.py": 3, "b.py": 2, "gone.py": 1}) == {"a.py": 3, "b.py": 1}
    assert read_baseline(written_baseline({"a.py": 3, "a folder/b.py": 1})) == {"a.py": 3, "a folder/b.py": 1}
