"""The parts that plug into the lab, and the rows that they give it.

The lab (bandit, language model, loss, record, run files, explanations, experiments, window) imports no part. It asks
:func:`rows` for what the parts contribute to one of its tables. A part is a package with a module of functions named
after the tables in :data:`TABLES`. Such a module is imported when the lab first asks for a row, after the language has
been chosen, because rows contain translated text. It imports the rest of its part inside these functions.

Our own parts are listed here and in ``app/parts.py`` and nowhere else, so they do not depend on the metadata of an
installation: they are also found in a source tree, in a frozen program and on another machine.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from grpo_core.text import tr

PARTS = {"trainers": "grpo_core.trainers.part", "teaching": "grpo_core.teaching.part"}
"""Name of a part -> the module with its rows."""
COMMANDS = {"trainers": ("ask", "audit", "diagnose", "import", "trl-script", "watch")}
"""Name of a part -> names of its subcommands, which must be known before the part is imported."""
TABLES = (
    "commands",  # functions that add a subcommand, given a function (name, help, run) -> parser
    "plugins",  # kind -> “module:table” of a grpo_core.plugins.Rows, to which packages of others can add rows
    "formats",  # grpo_core.foreign.formats.Formats: runs recorded by other programs
    "imported",  # grpo_core.foreign.formats.ImportedRuns: run files with runs of other programs
    "jobs",  # name -> grpo_core.child.answering.Answer: experiments in a separate process
    "models",  # grpo_core.learners.FolderModels: models from a folder
    "options",  # name of a subcommand -> function that adds options to its parser
    "packed",  # name -> dataclass that can be sent between processes
    "requests",  # name -> grpo_core.child.answering.Answer: requests to a process that reads untrusted files
    "prompt_tables",  # ending of a name -> grpo_core.lm.prompt_file.PromptTable: files with the user's prompts
    "starts",  # grpo_core.commands.train_command.Start: what a run of “train” can start from
)
"""The tables of the core to which a part can contribute, each with the type of its rows."""
ENVIRONMENT = "GRPO_LAB_PARTS"
"""Environment variable with the names of the parts to use, separated by commas; all if it is not set. Child processes
inherit it.
"""


def command_names() -> frozenset[str]:
    """Return the names of the subcommands of the parts that are switched on, without importing a part."""
    return frozenset(command for name in names() for command in COMMANDS.get(name, ()))


def names(listed: Mapping[str, str] = PARTS) -> tuple[str, ...]:
    """Return the names of the parts in ``listed`` that are switched on."""
    wanted = os.environ.get(ENVIRONMENT)
    return tuple(name for name in listed if wanted is None or name in wanted.split(","))


def rows(table: str) -> list[Any]:
    """Return what the parts that are switched on contribute to one of :data:`TABLES`, one entry per part.

    A part that cannot be imported contributes nothing; :func:`problems` says why.
    """
    return rows_in(table, PARTS, TABLES)


def merged(table: str) -> dict[str, Any]:
    """Return the rows of a table whose entries are mappings, as one mapping."""
    return {name: row for entry in rows(table) for name, row in entry.items()}


def rows_in(table: str, listed: Mapping[str, str], tables: Sequence[str]) -> list[Any]:
    """Return the entries of ``table`` in the modules ``listed`` (:func:`rows`).

    Raises:
        LookupError: there is no table of this name.
    """
    if table not in tables:
        raise LookupError(f"There is no table “{table}”; there are {', '.join(tables)}.")
    entries = [_entry(listed[name], table)[0] for name in names(listed)]
    return [entry for entry in entries if entry is not None]


def problems(listed: Mapping[str, str] = PARTS, tables: Sequence[str] = TABLES) -> list[str]:
    """Return one message for each part that is switched on and cannot be used."""
    failed = {
        name: next(filter(None, (_entry(listed[name], table)[1] for table in tables)), "") for name in names(listed)
    }
    return [
        tr("The part “{name}” is missing: {why}.").format(name=name, why=why) for name, why in failed.items() if why
    ]


@cache
def _entry(module: str, table: str) -> tuple[Any, str]:
    """Return a module's contribution to a table (or None), and why it failed (or an empty text)."""
    try:
        contributes = getattr(import_module(module), table, None)
        return None if contributes is None else contributes(), ""
    except Exception as error:  # a fault in one part must not stop the lab or the other parts
        why = f"{type(error).__name__}: {error}"
        logging.getLogger(__name__).error("%s contributes nothing to “%s”: %s", module, table, why)
        return None, why
