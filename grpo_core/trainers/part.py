"""Rows that the part for other trainers contributes to the tables of the core (:data:`grpo_core.parts.TABLES`)."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grpo_core.child.answering import Answer
from grpo_core.foreign.formats import Formats
from grpo_core.foreign.recording import Source
from grpo_core.learners import FolderModels

if TYPE_CHECKING:
    from grpo_core.commands.train_command import Start
    from grpo_core.foreign.formats import ImportedRuns
    from grpo_core.lm.learner import PolicyLearner
    from grpo_core.lm.prompt_file import Prompts, PromptTable


def commands() -> tuple[Callable[[Callable[..., Any]], None], ...]:
    from grpo_core.trainers.commands import examining, model_options, watch_command

    return (
        model_options.add_script_command,
        examining.add_import,
        examining.add_audit,
        examining.add_diagnose,
        examining.add_ask,
        watch_command.add_command,
    )


def options() -> dict[str, Callable[[argparse.ArgumentParser], None]]:
    from grpo_core.trainers.commands import model_options, preset_check, trl_sweep_command

    return {
        "export": model_options.add_export_option,
        "presets": preset_check.add_option,
        "sweep": trl_sweep_command.add_option,
    }


def starts() -> Start:
    from grpo_core.commands.train_command import Start
    from grpo_core.trainers.commands import model_options

    return Start(add_options=model_options.add_options, base=model_options.base, resumed=model_options.resumed)


def prompt_tables() -> dict[str, PromptTable]:
    from grpo_core.lm.prompt_file import PromptTable

    return {".parquet": PromptTable(rows=_parquet_rows, read=_read_prompts)}


def formats() -> Formats:
    from grpo_core.trainers.run_paths import file_and_run

    return Formats(knows=_knows, open=_open_source, place_of=lambda path: file_and_run(path)[0])


def plugins() -> dict[str, str]:
    checks = "grpo_core.trainers.health.checks"
    return {
        "reader": "grpo_core.trainers.importers:IMPORTERS",
        "check": f"{checks}:CHECKS",
        "claim": f"{checks}:CLAIMS",
    }


def imported() -> ImportedRuns:
    from grpo_core.foreign.formats import ImportedRuns
    from grpo_core.trainers import imported_reader, recorded_series

    return ImportedRuns(open=imported_reader.opened, metric=recorded_series.metric)


def models() -> FolderModels:
    from grpo_core.trainers.model_summary import in_fewer_words, model_summary, origin

    return FolderModels(
        origin=origin,
        learner=_learner,
        summary=model_summary,
        brief=in_fewer_words,
    )


def requests() -> dict[str, Answer]:
    from grpo_core.trainers import recorded_jobs
    from grpo_core.trainers.columns import columns
    from grpo_core.trainers.hf.reading import model

    return {
        "model": model,
        "recorded_series": recorded_jobs.series,
        "examination": recorded_jobs.examination,
        "swept": recorded_jobs.swept,
        "columns": columns,
    }


def packed() -> dict[str, type]:
    from grpo_core.foreign.recording import Completions, Report
    from grpo_core.foreign.trajectory import ToolCall, Trajectory, Turn
    from grpo_core.trainers.audit.put_right import Moved, PutRight
    from grpo_core.trainers.claims import advice, faults, findings, group_size, measured, put_right
    from grpo_core.trainers.columns import Column
    from grpo_core.trainers.health import Diagnosis, Evidence, Finding, Healthy, Link, NotLookedAt
    from grpo_core.trainers.health.checks import CLAIMS
    from grpo_core.trainers.hf.adapter_files import AdapterFiles
    from grpo_core.trainers.hf.folder import ModelFiles
    from grpo_core.trainers.recorded_jobs import Verdict

    claims = (
        advice.Advice,
        findings.EqualGroups,
        faults.Fault,
        group_size.LargerGroups,
        measured.Measured,
        put_right.Righted,
    )
    return {
        "column": Column,
        "completions": Completions,
        "diagnosis": Diagnosis,
        "adapter": AdapterFiles,
        "evidence": Evidence,
        "finding": Finding,
        "put right": PutRight,
        "moved": Moved,
        "healthy": Healthy,
        "link": Link,
        "model": ModelFiles,
        "not looked at": NotLookedAt,
        "report": Report,
        "tool call": ToolCall,
        "trajectory": Trajectory,
        "turn": Turn,
        "verdict": Verdict,
        **{f"claim: {kind.__name__}": kind for kind in claims},
        **{f"claim: {name}": kind for name, kind in CLAIMS.items()},
    }


def _parquet_rows(path: Path, wanted: Container[str]) -> tuple[Sequence[str], Iterable[Mapping[str, Any]]]:
    from grpo_core.parsing import column_name
    from grpo_core.trainers.importers.parquet import Columns

    columns = Columns(path)
    return columns.names, columns.records([name for name in columns.names if column_name(name) in wanted])


def _read_prompts(path: Path, **how: Any) -> Prompts:
    from grpo_core.foreign.readers import Readers

    with closing(Readers(own_process=True)) as readers:
        return readers.prompts(path, **how)


def _knows(path: Path) -> bool:
    from grpo_core.trainers.importers import importer_for
    from grpo_core.trainers.importers.unknown import OF_TRAINERS

    return path.name.lower().endswith(OF_TRAINERS) or importer_for(path) is not None


def _open_source(path: Path, index: Path | None, columns: str) -> Source:
    from grpo_core.trainers.importers import open_source

    return open_source(path, index=index, columns=columns)


def _learner() -> Callable[..., PolicyLearner[Any]]:
    from grpo_core.trainers.hf.learner import FolderLearner

    return FolderLearner
