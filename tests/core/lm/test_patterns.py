"""Regular expressions from a prompt file: they match as ``re`` does, and none of them can hang the program."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grpo_core.config import LanguageTask
from grpo_core.errors import GrpoError
from grpo_core.lm.patterns import PatternMatcher
from grpo_core.lm.problems import Prompt
from grpo_core.lm.prompt_file import read_prompts
from grpo_core.lm.rewards import parts
from tests.core.child import mains

ROOT = Path(__file__).parents[3]
CATASTROPHES = {
    "(a+)+$": "a" * 40 + "!",
    "(.*)*(.*)*(.*)*!$": "=" * 60,
}


@pytest.fixture
def patterns() -> Iterator[PatternMatcher]:
    matcher = PatternMatcher()
    yield matcher
    matcher.close()


@pytest.mark.quick_cases("(a+)+$")
@pytest.mark.parametrize("pattern", CATASTROPHES)
def test_a_search_without_end_ends_and_names_the_pattern_and_the_text(patterns: PatternMatcher, pattern: str) -> None:
    begun = time.monotonic()
    with pytest.raises(GrpoError, match="is still searching") as refused:
        patterns.found(pattern, CATASTROPHES[pattern])
    assert pattern in str(refused.value)
    assert CATASTROPHES[pattern][:40] in str(refused.value)
    assert time.monotonic() - begun < 60
    assert patterns.found("=14$", "2+12=14")
    assert not patterns.found("=14$", "2+12=145")


PIECES = st.sampled_from(
    ["a", "=", "1", ".", "^", "$", "\\d", "\\b", "[a-c]", "[[:alpha:]]", "(", ")", "(?:", "|", "*", "+", "?", "{2}",
     "{e}", "{1,2}", "\\1", "(?i)", "(?=", "é", "\\Z", "\\h", "\\K", "++", "(?>", "\ud800", "\n", " "]
)  # fmt: skip # table, one row per line
PATTERNS = st.lists(PIECES, max_size=7).map("".join)


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
@settings(max_examples=300, deadline=None)
@given(pattern=PATTERNS, text=st.text(alphabet="abcA=12é \n", max_size=12))
def test_what_is_found_is_what_re_finds(pattern: str, text: str) -> None:
    matcher = SHARED
    try:
        expected = re.search(pattern, text) is not None
    except (re.error, OverflowError, RecursionError):
        with pytest.raises(GrpoError, match="not a regular expression"):
            matcher.found(pattern, text)
        return
    assert matcher.found(pattern, text) == expected


SHARED = PatternMatcher()


def test_the_completion_that_could_not_be_scored_is_named_as_before() -> None:
    task = LanguageTask(problem="own", file="unused.csv", checker="regex")
    with pytest.raises(GrpoError, match=r"“14” to “2\+2=” could not be scored: it is not a regular .*unterminated"):
        parts(task, Prompt("2+2=", "("), "14")


@pytest.mark.long
@pytest.mark.skipif(os.name != "posix", reason="signals stop processes there alone")
def test_a_process_that_somebody_has_stopped_is_replaced_by_another(patterns: PatternMatcher) -> None:
    assert patterns.found("a", "cat")
    assert patterns._process is not None
    stopped = patterns._process
    assert stopped.pid is not None
    os.kill(stopped.pid, signal.SIGSTOP)
    assert patterns.found("^c", "cat")
    assert stopped.close() == "killed by signal 9"


@pytest.mark.parametrize("length", [3, 2_000_000], ids=["at once", "more than a pipe takes"])
def test_a_process_that_never_answers_is_ended_and_that_is_said(
    patterns: PatternMatcher, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grpo_core.lm.patterns.serve", mains.silent)
    monkeypatch.setattr("grpo_core.lm.patterns._PATIENCE", 0.1)
    with pytest.raises(GrpoError, match=r"did not respond for 0\.1 seconds on “a\+”"):
        patterns.found("a+", "a" * length)


@pytest.mark.long
def test_a_reward_says_which_completion_could_not_be_scored() -> None:
    task = LanguageTask(problem="own", file="unused.csv", checker="regex")
    with pytest.raises(GrpoError, match=r"could not be scored: the regular expression .* is still searching"):
        parts(task, Prompt("1+1=", "(1+)+$"), "1" * 40 + "=")


@pytest.mark.long
def test_a_pattern_that_takes_too_long_to_read_is_refused_with_its_line(tmp_path: Path) -> None:
    slow = "(?i)" + "[\\x00-\U0010ffff]" * 400
    path = tmp_path / "mine.csv"
    path.write_text(f"prompt,answer\n1+1=,2\n1+2=,{slow}\n", encoding="utf-8")
    begun = time.monotonic()
    with suppress(GrpoError):
        read_prompts(path, checker="regex", longest=40)
    assert time.monotonic() - begun < 60


@pytest.mark.parametrize(
    "ends",
    [
        "os._exit(9)",
        "threading.Timer(0.3, os._exit, [9]).start(); matcher().found('(a+)+$', 'a' * 40 + '!')",
    ],
    ids=["idle", "searching without end"],
)
def test_the_process_ends_with_the_one_that_asks(ends: str) -> None:
    script = (
        "import os, threading; from grpo_core.lm.patterns import matcher\n"
        "assert matcher().found('a', 'cat')\n"
        "print(matcher()._process.pid, flush=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", script + ends], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 9
    pid = int(done.stdout)
    psutil = pytest.importorskip("psutil")
    end = time.monotonic() + 60
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < end, "it is still there"
