"""Every term that the program uses is explained, correctly and with its source."""

from __future__ import annotations

import re

import pytest

from app.formula.render import picture
from app.help.glossary import glossary, lookup, tooltip_html, tooltip_text
from app.panels.help import references
from grpo_core.config import PRESETS, Learner, Objective, Optimizer, described
from grpo_core.shipped import resource

TERMS = """policy optimization, group sampling, group-relative advantage, baseline, leave-one-out, clipping, clip range,
dual clip, KL penalty, KL estimator, k1, k2, k3, ratio, surrogate, reference policy, old policy, entropy, entropy bonus,
reward, advantage, group, group size, dead group, standard deviation, temperature, inner pass, mu, reduction, weight,
token loss, loss, gradient, push, log-probability, nat, prompt, completion, token, mask, padding, learning rate, Adam,
SGD, critic, value, GAE, REINFORCE, RLOO, PPO, GRPO, Dr. GRPO, DAPO, GSPO, CISPO, SAPO, LUSPO, VESPO, GMPO, BNPO,
on-policy, off-policy, importance sampling, bandit, landscape, update, step, head, cursor, branch, seed,
max probability, gradient norm, clip fraction, stage, run, objective, policy, logit, truncation"""

MYTHS = {
    "the clip holds the ratio inside a band": r"(keeps?|holds?|stays?) the ratio (inside|within|between)",
    "the loss tells progress": r"loss (shows|tells|measures) (progress|how)",
    "a baseline always reduces variance": r"(reduces|lowers) (the )?variance",
    "bigger groups are better": r"(bigger|larger) groups? (is|are) better",
    "DeepSeekMath used groups of 8": r"2402\.03300[^;]*\b8 samples",
    "DAPO is leave-one-out": r"DAPO[^.]*leave",
}


@pytest.mark.parametrize("term", [term.strip() for term in TERMS.split(",")])
def test_every_term_of_the_field_is_explained(term: str) -> None:
    assert lookup(term) is not None


def test_every_entry_is_one_sentence_with_a_source_and_leads_to_entries() -> None:
    known = {entry.id for entry in glossary()}
    for entry in glossary():
        assert all((entry.title, entry.sentence, entry.source)), entry.id
        assert set(entry.see) <= known - {entry.id}, entry.id
        assert entry.sentence.endswith("."), entry.id
        assert entry.sentence[0].isupper(), entry.id
        assert "!" not in entry.sentence
        if entry.id != "grpo_in_one_paragraph":
            assert not re.search(r"\. [A-Z]", entry.sentence), f"{entry.id} has more than one sentence"
        assert len(entry.sentence.split()) <= (150 if entry.id == "grpo_in_one_paragraph" else 40), entry.id


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_explained(name: str) -> None:
    assert lookup(name.split(" (")[0].partition(" +")[0]) is not None


def test_every_symbol_of_a_setting_that_the_glossary_has_means_the_same() -> None:
    known = {"β": "kl_penalty", "μ": "inner_pass", "G": "group_size", "γ": "discount", "δ": "std_epsilon"}
    for cls in (Objective, Learner, Optimizer):
        for _, about in described(cls):
            if about.symbol in known:
                entry = lookup(about.symbol)
                assert entry is not None
                assert entry.id == known[about.symbol]


@pytest.mark.parametrize("myth", MYTHS)
def test_no_sentence_repeats_a_myth(myth: str) -> None:
    for entry in glossary():
        assert not re.search(MYTHS[myth], f"{entry.sentence} {entry.source}", re.IGNORECASE), entry.id


def test_the_subtle_points_are_said_right() -> None:
    assert "the ratio itself may go on" in str(lookup("clipping"))
    assert "KL(π_ref‖π)" in str(lookup("k3"))
    assert "expected gradient in the first pass is zero" in str(lookup("k1"))
    assert "a KL penalty still pulls" in str(lookup("dead group"))
    assert "a handle, not a score" in str(lookup("loss"))
    assert "nothing to do with clipping" in str(lookup("truncation"))
    assert "must use the same one" in str(lookup("temperature"))


def test_every_paper_named_as_a_source_is_among_the_references() -> None:
    cited = " ".join(reference.where for reference in references())
    for entry in glossary():
        for number in re.findall(r"arXiv:\d{4}\.\d{5}", entry.source):
            assert number in cited, (entry.id, number)
    for preset in PRESETS.values():
        for number in re.findall(r"arXiv:\d{4}\.\d{5}", preset.source):
            assert number in cited, preset.source
    for lesson in (*sorted(resource("lessons").glob("*.toml")), resource("published.toml")):
        for number in re.findall(r"arXiv:\d{4}\.\d{5}", lesson.read_text("utf-8")):
            assert number in cited, (lesson.name, number)


def test_every_formula_can_be_typeset(qapp: object) -> None:
    for entry in glossary():
        if entry.latex:
            assert picture(entry.latex, 16.0, "#000000") is not None, entry.id


def test_terms_are_found_whatever_their_case_hyphens_and_letters() -> None:
    assert lookup("Leave One Out") == lookup("leave-one-out") == lookup("leave_one_out")
    assert lookup("r").id == "ratio"  # type: ignore[union-attr]
    assert lookup("R").id == "reward"  # type: ignore[union-attr]
    assert lookup("π_ref").id == "reference_policy"  # type: ignore[union-attr]
    assert lookup("no such term") is None
    assert lookup("") is None


def test_no_name_belongs_to_two_entries() -> None:
    seen: dict[str, str] = {}
    for entry in glossary():
        for name in {entry.id.replace("_", " "), entry.title.casefold(), *(other.casefold() for other in entry.also)}:
            plain = re.sub(r"[^\w+]+", " ", name).strip()
            assert seen.setdefault(plain, entry.id) == entry.id, name


def test_search_puts_what_is_named_so_first() -> None:
    found = [entry.id for entry in glossary().search("entropy")]
    assert found[:2] == ["entropy", "entropy_bonus"]
    assert len(found) > 2
    assert glossary().search("zebra") == []
    assert len(glossary().search("")) == len(glossary())


def test_tooltips_hold_sentence_note_and_source_and_no_raw_markup() -> None:
    text = tooltip_html("clip range", "Allowed: a < b")
    entry = lookup("clip range")
    assert entry is not None
    assert entry.sentence in text
    assert "a &lt; b" in text
    assert entry.source in text
    assert tooltip_html("no such term", "note") == "<p>note</p>"
    assert tooltip_html("no such term") == ""
    assert tooltip_text("clip range", "Allowed: a < b") == f"{entry.sentence} Allowed: a < b"


def test_references_are_whole_distinct_and_in_order_of_years() -> None:
    assert len({reference.id for reference in references()}) == len(references())
    assert len({reference.url for reference in references()}) == len(references())
    years = [reference.year for reference in references()]
    assert years == sorted(years)
    for reference in references():
        assert reference.url.startswith(("https://", "http://"))
        assert reference.gist.endswith(".")
        if reference.where.startswith("arXiv:"):
            assert reference.url == "https://arxiv.org/abs/" + reference.where.removeprefix("arXiv:")
