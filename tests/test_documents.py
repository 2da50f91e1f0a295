"""Links, paths, lessons and make targets in README, HACKING and docs/ exist; the table of clean systems is kept."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tools.clean_roots import DOCUMENT as INSTALL
from tools.clean_roots import HEAD, SYSTEMS, merged
from tools.house import DOCUMENT, document
from tools.package.root import SCRIPTS

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "package_recipes/*.md", "resources/*/README.md")
    for path in ROOT.glob(pattern)
)
ROOMS = ("app", "grpo_core", "tests", "tools", "resources", "docs", "package_recipes", "benchmarks")


def names(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in paths]


def lessons() -> dict[int, str]:
    """Return the title of every shipped lesson by its number."""
    read = (tomllib.loads(path.read_text("utf-8")) for path in ROOT.glob("resources/lessons/*.toml"))
    return {lesson["number"]: lesson["title"] for lesson in read}


@pytest.mark.parametrize("path", DOCUMENTS, ids=names(DOCUMENTS))
def test_every_link_leads_to_a_file(path: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text("utf-8"))
    broken = [target for target in targets if "://" not in target and not (path.parent / target).exists()]
    assert not broken


@pytest.mark.parametrize("path", DOCUMENTS, ids=names(DOCUMENTS))
def test_every_path_that_is_named_exists(path: Path) -> None:
    """Check paths in backticks that begin with a folder of the repository. ``<name>`` in a path matches any name."""
    named = re.findall(rf"`((?:{'|'.join(ROOMS)})/[^`\s]*)`", path.read_text("utf-8"))
    patterns = {re.sub(r"<[^>]*>", "*", name).rstrip("/") for name in named}
    assert not [name for name in patterns if not any(ROOT.glob(name))]


def test_the_page_of_places_has_every_lesson_under_its_number() -> None:
    rows = re.findall(r"^\| (.+?) \| (\d+) \|", (ROOT / "docs/where.md").read_text("utf-8"), re.MULTILINE)
    assert {int(number): title for title, number in rows} == lessons()


@pytest.mark.parametrize("path", DOCUMENTS, ids=names(DOCUMENTS))
def test_every_make_target_that_is_named_exists(path: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)", path.read_text("utf-8"))) <= targets


def test_the_drawing_of_the_house_is_that_of_the_imports() -> None:
    assert DOCUMENT.read_text("utf-8") == document(), "run python -m tools.house"


FOREIGN = re.compile(
    r"\b(?:one|two|three|four|five|six|seven|eight|nine|nineteen)(?: right)? of (?:ten|twenty|a hundred)\b"
    r"|\b(?:pass|passes) a batch\b|\b(?:answers|nats?) an? (?:update|token)\b|\ba parameter more\b"
    r"|\b[Ss]amples of \w+ updates ago\b|\b[Ww]hoever\b|\bWho wants\b|\bstays?\.|\b[Tt]urn(?:ed)? (?:β|it (?:up|down))"
    r"|\bmend(?:s|ed|ing)?\b|\bknows no\b|\bat equal what\b|, and what not\b"
)
"""Turns of phrase that a native teacher would not use."""


@pytest.mark.parametrize("path", sorted((ROOT / "resources" / "lessons").glob("*.toml")), ids=lambda path: path.stem)
def test_the_lessons_have_no_foreign_turn_of_phrase(path: Path) -> None:
    assert FOREIGN.findall(path.read_text(encoding="utf-8")) == []


OLD = "| Debian 12 | 3.11.2 | 23.0.1 its own | `make run` | 84 | 520 MB | 2026-11-28 |"
TEST = "| Debian 12 | 3.11.2 | 23.0.1 its own | `make test` | 400 | 2,200 MB | 2026-11-28 |"
OTHER = "| Debian 13 | 3.13.5 | 25.1.1 its own | `make run` | 80 | 530 MB | 2026-11-28 |"


def test_a_row_replaces_that_of_the_same_system_command_and_kind_of_pip() -> None:
    document = f"before\n\n{HEAD}\n|---|\n{OTHER}\n{OLD}\n\nafter | x |\n"
    later = OLD.replace("84", "70").replace("23.0.1", "23.0.2").replace("-28", "-30")
    newest = OLD.replace("23.0.1 its own", "26.3 newest")
    assert merged(document, [TEST, later, newest]) == (
        f"before\n\n{HEAD}\n|---|\n{later}\n{newest}\n{TEST}\n{OTHER}\n\nafter | x |\n"
    )


def test_the_document_has_the_table_and_no_other_place_is_written() -> None:
    assert merged(INSTALL.read_text("utf-8"), []) == INSTALL.read_text("utf-8")
    with pytest.raises(ValueError, match="substring not found"):
        merged("no table", [OLD])


@pytest.mark.skipif(not SCRIPTS.is_dir(), reason="debootstrap is not installed")
def test_debootstrap_has_the_script_of_each_system_that_is_tried() -> None:
    assert {one.mirror.script for one in SYSTEMS} <= {path.name for path in SCRIPTS.iterdir()}
