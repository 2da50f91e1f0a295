"""A virtual screen for programs that open a window, and screenshots of it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SIZE = "1600x1000x24"


@contextmanager
def screen(*, managed: bool = True) -> Iterator[str]:
    """Run an X server, with a window manager if ``managed`` is set, and yield its display, such as ":99"."""
    reading, writing = os.pipe()
    command = ["Xvfb", "-displayfd", str(writing), "-screen", "0", SIZE, "-nolisten", "tcp", "-noreset"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, pass_fds=[writing], **quiet) as server:  # type: ignore[call-overload]
        os.close(writing)
        with os.fdopen(reading) as said:
            display = f":{said.readline().strip()}"
        running: list[subprocess.Popen[bytes]] = [server]
        if managed:
            running.insert(0, subprocess.Popen(["openbox"], env=os.environ | {"DISPLAY": display}, **quiet))  # type: ignore[call-overload]
        try:
            yield display
        finally:
            for process in running:
                process.terminate()
                process.wait()


def picture(display: str, target: Path) -> int:
    """Write a screenshot as PNG. Return the number of colours, which is small for an empty screen."""
    target.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["import", "-display", display, "-window", "root", str(target)], check=True)
    counted = subprocess.run(["identify", "-format", "%k", str(target)], capture_output=True, text=True, check=True)
    return int(counted.stdout)


def press(display: str, *keys: str) -> None:
    """Press keys, such as "space" or "alt+F4", in the window that has the focus."""
    subprocess.run(["xdotool", "key", *keys], env=os.environ | {"DISPLAY": display}, check=True)
