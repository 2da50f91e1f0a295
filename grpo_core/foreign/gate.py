"""The gate: the list of everything from other people that the program reads, and where each kind is parsed.

A kind is parsed either in the process for untrusted files, by modules that may use any parser, or here, with limits, by
the functions of :mod:`grpo_core.parsing`. No other module parses what other people wrote. Preferences, layouts,
progress, queues and the like are the user's own files, and are not on the list.
"""

from __future__ import annotations

from dataclasses import dataclass

from grpo_core import parts


@dataclass(frozen=True, kw_only=True)
class Foreign:
    """A kind of bytes that come from other people.

    Attributes:
        requests: the requests to the process for untrusted files that read it
            (:func:`grpo_core.foreign.answers.files_table`); empty if only limited parsers read it.
        modules: modules, or packages with a dot at the end, that parse it, in that process if there are requests.
    """

    name: str
    requests: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()


PASSES = (
    Foreign(name="session", requests=("session",), modules=("grpo_core.runs.session",)),
    Foreign(name="run file", requests=("converted_run",), modules=("grpo_core.runs.",)),
    Foreign(name="prompt file", requests=("prompts",)),
    Foreign(name="settings", modules=("grpo_core.config.reading",)),
    Foreign(name="SLURM file", modules=("grpo_core.jobs.slurm",)),
    Foreign(name="answer of a cluster", modules=("grpo_core.jobs.cluster_calls",)),
)


def passes() -> tuple[Foreign, ...]:
    """Return all kinds, including those of the parts."""
    return PASSES + tuple(kind for entry in parts.rows("foreign") for kind in entry)
