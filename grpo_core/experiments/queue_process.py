"""A queue of runs in a process of its own: it tells of every update on a connection, and ends when that is gone."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from grpo_core.experiments.queue import Progress, read, run_status, work
from grpo_core.host.lifeline import live_with_parent
from grpo_core.host.wire import error_message, receive, send

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


def serve(connection: Connection, folder: str) -> None:
    """The process's whole life: work until all is done, or until anything is said on the connection."""
    live_with_parent()
    stopped: list[bool] = []

    def cancelled() -> bool:
        if not stopped and connection.poll():
            stopped.append(True)
        return bool(stopped)

    def tell(progress: Progress) -> None:
        send(connection, {"is": "progress", **progress._asdict()})

    try:
        try:
            for place, run in enumerate(read(Path(folder)).runs):
                send(connection, {"is": "status", "place": place, **asdict(run_status(Path(folder), run))})
            send(connection, {"is": "ready"})
            done = work(Path(folder), cancelled=cancelled, progress=tell)
            send(connection, {"is": "ended", "done": done})
        except OSError:
            raise
        except Exception as error:
            send(connection, error_message(error))
        receive(connection)  # stays until it is let go, so that its end is never mistaken for a crash
    except (EOFError, OSError):
        return
