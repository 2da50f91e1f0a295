"""Readers and diagnosis checks of packages that fail: a sentence names the package, and the rest goes on."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from grpo_core import plugins
from grpo_core.errors import RunFileError
from grpo_core.foreign.recording import Source
from grpo_core.trainers.health import CHECKS, Diagnosis, diagnose
from grpo_core.trainers.importers import Importer, importer_for, open_source
from grpo_core.trainers.importers.trace import Trace
from tests.core.trainers.trace_files import DATA


def fail(*given: object) -> Any:
    raise ZeroDivisionError("by nought")


def offered(monkeypatch: pytest.MonkeyPatch, kind: str, name: str, row: object) -> str:
    """Offer one row of a package of its own, and return the name of the row."""
    module = ModuleType(f"package_with_{name}")
    module.ROW = row  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    told = [[f"with-{name}", "1", f"{kind}.{name}", f"{module.__name__}:ROW"]]
    monkeypatch.setenv(plugins.ENVIRONMENT, json.dumps(told))
    assert plugins.refusals() == []
    return f"with-{name}.{name}"


@pytest.mark.parametrize("place", ["missing", "measure", "judge"])
def test_a_check_that_fails_is_not_looked_at_and_the_others_are(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    before: Diagnosis = diagnose(Trace(DATA / "grpo"))
    changes: dict[str, Any] = {"title": "Of its own", place: fail}
    check = dataclasses.replace(CHECKS["non_finite"], **changes)
    name = offered(monkeypatch, "check", f"bad-{place}", check)
    result = diagnose(Trace(DATA / "grpo"))
    (skipped,) = [one for one in result.not_looked_at if one.check == name]
    assert skipped.title == f"Of its own (package with-bad-{place})"
    assert skipped.why == f"{name} of the package “with-bad-{place}” failed: ZeroDivisionError: by nought."
    assert (result.findings, result.looked_at) == (before.findings, before.looked_at)
    assert len(result.not_looked_at) == len(before.not_looked_at) + 1


def test_an_error_in_a_row_of_ours_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        plugins.failed("non_finite", ZeroDivisionError("by nought"))


def test_a_probe_that_fails_recognises_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    offered(monkeypatch, "reader", "bad-probe", Importer(title="files of its own", probe=fail, open=fail))
    (tmp_path / "some.txt").write_text("text", "utf-8")
    assert importer_for(tmp_path / "some.txt") is None
    with pytest.raises(RunFileError, match=r"files of its own \(package with-bad-probe\)\.$"):
        open_source(tmp_path / "some.txt")
    assert importer_for(DATA / "grpo") is not None


def test_a_reader_that_fails_is_a_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def probe(path: Path) -> bool:
        return path.suffix == ".txt"

    name = offered(monkeypatch, "reader", "bad-reader", Importer(title="files of its own", probe=probe, open=fail))
    (tmp_path / "some.txt").write_text("text", "utf-8")
    with pytest.raises(RunFileError, match=f"^{name} of the package “with-bad-reader” failed: ZeroDivisionError"):
        open_source(tmp_path / "some.txt")


def test_the_program_that_trained_is_named_with_the_package_that_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(path: Path) -> Source:
        return Trace(DATA / "grpo")

    offered(monkeypatch, "reader", "good-reader", Importer(title="its own", probe=lambda path: True, open=read))
    trained_by = open_source(Path(__file__)).settings.recorded.source
    assert trained_by == f"{Trace(DATA / 'grpo').settings.recorded.source} (package with-good-reader)"
