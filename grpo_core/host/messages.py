"""Conversion of commands, bundles of new updates and reports to and from messages."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from grpo_core.breakpoints import breakpoint_from_json
from grpo_core.child.wire import Message
from grpo_core.config import Settings, settings_from_json
from grpo_core.host import commands
from grpo_core.host.buffer import NAMES, Buffer, Bundle, MakeStep
from grpo_core.host.commands import Begin, Command, Look, RunCommand
from grpo_core.host.reports import Report, State
from grpo_core.progress import Phase, Progress, Written
from grpo_core.questions import question_from_json
from grpo_core.record import Step
from grpo_core.runs.layout import decoded, encoded

COMMANDS: dict[str, type[Command]] = {
    name: kind
    for name, kind in vars(commands).items()
    if isinstance(kind, type) and issubclass(kind, Command) and kind not in (Command, RunCommand, Look)
}
"""Every command that is sent under its name."""


@lru_cache(maxsize=64)
def cached_settings(text: str) -> Settings:
    """Return settings parsed from JSON. Equal strings give the same object, so unchanged settings compare quickly."""
    return settings_from_json(text)


Coder = tuple[Callable[[Any], Any], Callable[[Any], Any]]
_CODERS: dict[str, Coder] = {
    "settings": (Settings.to_json, cached_settings),
    "path": (str, Path),
    "parent": (lambda parent: (str(parent[0]), parent[1]), lambda parent: (Path(parent[0]), parent[1])),
    "question": (lambda question: question.to_json(), question_from_json),
    "breakpoints": (
        lambda breakpoints: [dataclasses.asdict(one) for one in breakpoints],
        lambda stored: tuple(breakpoint_from_json(one) for one in stored),
    ),
}
"""Conversions of a command's fields to and from JSON, by name. The other fields are already numbers or strings."""
_IN_BYTES = ("resume", "unwritten", "buffer")
"""Fields of ``Begin`` with steps, from which the receiver builds the buffer."""


def _coded(name: str, value: Any, way: int) -> Any:
    """Convert the value of a field to JSON (0) or back (1). None stays None."""
    return _CODERS[name][way](value) if name in _CODERS and value is not None else value


def from_command(command: Command) -> tuple[Message, list[bytes]]:
    """Convert a command to a message and its blobs."""
    sent = (field.name for field in dataclasses.fields(command) if field.name not in _IN_BYTES)
    fields: Message = {name: _coded(name, getattr(command, name), 0) for name in sent}
    steps: Sequence[Step] = ()
    if isinstance(command, Begin):
        fields["resumed"] = command.resume is not None
        steps = [*([] if command.resume is None else [command.resume]), *command.unwritten]
    heads, blobs = from_steps(steps)
    return {"do": type(command).__name__, "fields": fields, "steps": heads}, blobs


def to_command(message: Message) -> Command:
    """Invert :func:`from_command`. A run that begins gets its own buffer."""
    kind = COMMANDS[message["do"]]
    stored = dict(message["fields"])
    steps = [make() for _, make in _makers(message["steps"], message.get("blobs", []))]
    resumed = stored.pop("resumed", False)
    fields = {name: _coded(name, value, 1) for name, value in stored.items()}
    if kind is Begin:
        resume, unwritten = (steps[0], steps[1:]) if resumed else (None, steps)
        last = resume.settings if resume is not None else fields["settings"]
        buffer = Buffer(fields["run_id"], last, head=resume.step if resume is not None else fields["start"])
        buffer.restore(unwritten)
        fields |= {"resume": resume, "unwritten": tuple(unwritten), "buffer": buffer}
    return kind(**fields)


def from_bundle(bundle: Bundle) -> tuple[Message, list[bytes]]:
    """Convert a bundle to a message and its blobs."""
    head, blobs = from_steps([make() for _, make in bundle.steps])
    message = {
        "is": "fresh",
        "run_id": bundle.run_id,
        "head": bundle.head,
        "committed": bundle.committed,
        "changes": [(number, settings.to_json()) for number, settings in bundle.changes],
        "steps": head,
    }
    return message, [*blobs, bundle.scalars.astype("<f8", copy=False).tobytes()]


def to_bundle(message: Message) -> Bundle:
    """Invert :func:`from_bundle`."""
    *blobs, scalars = message["blobs"]
    return Bundle(
        run_id=message["run_id"],
        head=message["head"],
        committed=message["committed"],
        scalars=np.frombuffer(scalars, "<f8").reshape(-1, len(NAMES)),
        changes=tuple((number, cached_settings(text)) for number, text in message["changes"]),
        steps=tuple(_makers(message["steps"], blobs)),
    )


def from_report(report: Report) -> Message:
    """Convert a report to a message."""
    return {"is": "report", **dataclasses.asdict(report), "state": report.state.value}


def to_report(message: Mapping[str, Any]) -> Report:
    """Invert :func:`from_report`."""
    fields = {field.name: message[field.name] for field in dataclasses.fields(Report)}
    return Report(**{**fields, "state": State(fields["state"])})


def from_progress(run_id: str, progress: Progress) -> Message:
    """Convert the progress of a run's current update to a message."""
    written = None if progress.written is None else vars(progress.written)  # asdict copies every token by itself
    fields = {**vars(progress), "phase": progress.phase.value, "written": written}
    return {"is": "progress", "run_id": run_id, **fields}


def to_progress(message: Mapping[str, Any]) -> tuple[str, Progress]:
    """Invert :func:`from_progress`. Return (id of the run, progress of its update)."""
    fields = {field.name: message[field.name] for field in dataclasses.fields(Progress)}
    written = fields["written"]
    if written is not None:
        rows = tuple(map(tuple, written["completions"]))
        prompt, ended = tuple(written["prompt"]), tuple(written["ended"])
        written = Written(group=written["group"], prompt=prompt, completions=rows, ended=ended)
    changed = {"phase": Phase(fields["phase"]), "written": written, "groups": tuple(fields["groups"])}
    return message["run_id"], Progress(**{**fields, **changed})


def from_steps(steps: Sequence[Step]) -> tuple[Message, list[bytes]]:
    """Encode steps as a header that holds each distinct string once, and one record per step."""
    texts: dict[str, int] = {}
    written: dict[int, str] = {}  # by identity: most share one object, and to hash it takes as long as to write it
    places, blobs = [], []
    for step in steps:
        layout, record = encoded(step)
        text = written.get(id(step.settings))
        if text is None:
            text = written[id(step.settings)] = _settings_json(step.settings)
        own = [texts.setdefault(each, len(texts)) for each in (text, layout)]
        places.append((step.step, *own))
        blobs.append(record)
    return {"texts": [*texts], "steps": places}, blobs


def _makers(head: Message, blobs: Sequence[bytes]) -> list[tuple[int, MakeStep]]:
    """Invert :func:`from_steps`. Return (number, function that decodes it) for every step."""
    texts = head["texts"]
    return [
        (number, partial(decoded, texts[layout], record, number, cached_settings(texts[settings])))
        for (number, settings, layout), record in zip(head["steps"], blobs, strict=True)
    ]


@lru_cache(maxsize=64)
def _settings_json(settings: Settings) -> str:
    return settings.to_json()
