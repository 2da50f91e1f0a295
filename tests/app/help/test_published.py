"""Published results: every figure has its source, is marked as not computed here, and avoids popular errors."""

from __future__ import annotations

import re

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QTextBrowser

from app.help.published import MARK, PARTS, Published, part_html, published
from tests.app.conftest import Driver
from tests.app.teaching.lessons.test_files import MYTHS
from tools.catalogue import shipped

ERRORS = {
    "DeepSeekMath used 8": r"deepseekmath[^.]{0,60}\b(g = 8|8 (samples|answers|outputs)|eight)",
    "2 GB per billion": r"\b2 ?gb (per|a) billion",
    "two models": r"grpo (needs|has|keeps) two models",
    "half the memory": r"half the memory",
    "clipped to a range": r"clipped to \[?1",
    "the aha moment as a fact": r"aha moment(?!.*(disputed|reported|”\?))",
    "DAPO leaves one out": r"dapo[^.]{0,60}leave-one-out",
    "REINFORCE uses one sample": r"reinforce uses (one|a single) sample",
    "one version for both": r"nature[^.]*71\.0",
}
"""Errors found in popular explanations."""
WRONG = (
    "DeepSeekMath samples G = 8 answers",
    "2 GB per billion parameters",
    "GRPO needs two models",
    "Half the memory.",
    "The ratio is clipped to [1 − ε, 1 + ε]",
    "The aha moment shows that it thinks",
    "DAPO uses leave-one-out baselines",
    "REINFORCE uses one sample, GRPO a group",
    "Nature reports 71.0",
)
SOURCED = r"arXiv:\d{4}\.\d{5}|doi:10\.\d+/\S+|documentation"


@pytest.mark.parametrize("entry", published(), ids=lambda entry: entry.title)
def test_every_entry_is_cited_marked_and_short(entry: Published) -> None:
    assert re.search(SOURCED, entry.source)
    assert entry.url.startswith("https://")
    cited = re.findall(r"\d{4}\.\d{5}", entry.source)
    assert not cited or any(paper in entry.url for paper in cited) or "doi" in entry.url or "docs" in entry.url
    assert re.search(r"section|Table|Figure|abstract|documentation|arXiv:2501.12948$|conclusion", entry.source)
    assert entry.mark in entry.block
    assert entry.mark.endswith("not computed here")
    assert (entry.mark == MARK) is ("arXiv" in entry.source or "doi" in entry.source) or entry.title == "verl"
    assert entry.source in entry.block
    assert len(entry.claim.split()) <= 40
    if entry.part == "results":
        assert re.search(r"\d", entry.figure)


def test_no_entry_repeats_a_popular_error_or_a_myth() -> None:
    for entry in published():
        said = f"{entry.title}: {entry.figure} {entry.claim} {entry.source}".replace("\n", " ")
        for name, pattern in {**ERRORS, **MYTHS}.items():
            assert not re.search(pattern, said, re.IGNORECASE), f"{name}: {said}"


def test_the_popular_errors_would_be_found() -> None:
    for said, (name, pattern) in zip(WRONG, ERRORS.items(), strict=True):
        assert re.search(pattern, said, re.IGNORECASE), name


def test_the_figures_are_those_that_were_checked() -> None:
    """These values were checked against the papers when they were entered."""
    figures = {entry.title: entry.figure for entry in published() if entry.figure}
    assert figures["DeepSeekMath 7B"] == "46.8 → 51.7%"
    assert figures["DeepSeek-R1-Zero"] == "15.6 → 71.0%"
    assert figures["DeepSeek-R1-Zero, peer reviewed"] == "15.6 → 77.9%"
    assert figures["DeepSeek-R1, first stage of RL"] == "ε 10"
    zero = " ".join(entry.claim for entry in published() if entry.title.startswith("DeepSeek-R1-Zero"))
    assert "clip" not in zero, "the report gives R1-Zero no clip range"
    assert figures["DAPO"] == "47 → 50 points"
    assert figures["Dr. GRPO"] == "43.3%"
    assert {entry.part for entry in published()} == set(PARTS)


def test_the_bars_of_the_chart_are_the_figures_of_the_text() -> None:
    drawn = [entry for entry in published() if entry.bars]
    assert len(drawn) == 3
    for entry in drawn:
        assert len(entry.bars) == len(entry.before) == len(entry.after)
        assert all(f"{number:.1f}" in f"{entry.figure} {entry.claim}" for number in (*entry.before, *entry.after))


def test_text_is_told_as_text() -> None:
    entry = Published(part="open", title="<b>", figure="1 < 2", claim="a & b", source="s", url='u"')
    assert "&lt;b&gt;" in entry.block
    assert "1 &lt; 2" in entry.block
    assert 'href="u&quot;"' in entry.block
    assert part_html("open").count("not computed here") == sum(entry.part == "open" for entry in published())


def test_help_leads_to_what_is_reported_by_keyboard(driver: Driver) -> None:
    window = driver.program.window
    driver.program.actions["references"].trigger()
    driver.settle()
    browser = window.docks["references"].findChild(QTextBrowser)
    assert browser is not None
    text = browser.toPlainText()
    for entry in published():
        assert entry.claim in text
    assert text.count("not computed here") == len(published())
    browser.setFocus(Qt.FocusReason.TabFocusReason)
    assert browser.verticalScrollBar().value() == 0
    for _ in range(4):  # the fourth link at the top
        QTest.keyClick(browser, Qt.Key.Key_Tab)
    QTest.keyClick(browser, Qt.Key.Key_Return)
    driver.qtbot.waitUntil(lambda: browser.verticalScrollBar().value() > 0)


def test_claims_are_for_translators_too() -> None:
    texts = set(shipped())
    assert all(entry.claim in texts and entry.title in texts for entry in published())
