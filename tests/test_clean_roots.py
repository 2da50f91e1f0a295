"""The table of clean systems in docs/install.md, whose rows are replaced by those of a new trial."""

from __future__ import annotations

import pytest

from tools.clean_roots import DOCUMENT, HEAD, SYSTEMS, merged
from tools.package.root import SCRIPTS

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
    assert merged(DOCUMENT.read_text("utf-8"), []) == DOCUMENT.read_text("utf-8")
    with pytest.raises(ValueError, match="substring not found"):
        merged("no table", [OLD])


@pytest.mark.skipif(not SCRIPTS.is_dir(), reason="debootstrap is not installed")
def test_debootstrap_has_the_script_of_each_system_that_is_tried() -> None:
    assert {one.mirror.script for one in SYSTEMS} <= {path.name for path in SCRIPTS.iterdir()}
