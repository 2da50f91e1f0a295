"""Layouts on which Qt itself would fail, in a separate process: the program survives, and says what was wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

LAYOUTS = """
import base64, hashlib, json, os, random, sys
from pathlib import Path
from PySide6.QtCore import qVersion
from PySide6.QtWidgets import QApplication
from app.application import Application
from app.settings.layouts import LAYOUT_VERSION
from app.settings.paths import find_paths
from app.settings.preferences import Preferences
chance, rounds = random.Random(int(sys.argv[1])), int(sys.argv[2])
application = QApplication([])
program = Application(application, find_paths(), Preferences())
program.window.show()
layouts, window = program.layout_files, program.window
assert layouts.save(window, "Mine") is None
path = next(program.paths.layouts.glob("layout-Mine.json"))
good = path.read_bytes()
odd = [None, True, -1, 2**70, "x", "AAAA", [], {}, [1, 2, 3, 4], ["a"] * 4, [0, 0, 10**9, 10**9], 1.5, "\\0"]
refused = 0
for _ in range(rounds):
    data = bytearray(good)
    for _ in range(chance.randrange(1, 6)):
        place = chance.randrange(len(data))
        kind = chance.randrange(4)
        if kind == 0:
            data[place] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del data[place : place + chance.randrange(1, 90)]
        elif kind == 2:
            data[place:place] = chance.randbytes(chance.randrange(1, 9))
        else:
            del data[place:]
        data = data or bytearray(b"{")
    path.write_bytes(bytes(data))
    refused += layouts.restore(window, "Mine") is not None
for _ in range(rounds):  # with the right checksum, so that the values are read; the state for Qt itself is intact
    state = json.loads(json.loads(good)["data"])
    key = chance.choice([*state, "more"])
    if key != "docks" or chance.random() < 0.5:
        state[key] = chance.choice(odd)
    else:
        state.pop(key)
    text = json.dumps(state)
    checksum = hashlib.sha256(text.encode()).hexdigest()
    kept = {"layout": LAYOUT_VERSION, "qt": qVersion(), "sha256": checksum, "data": text}
    path.write_text(json.dumps(kept))
    said = layouts.restore(window, "Mine")
    assert said is None or said.endswith("."), said
path.write_bytes(good)
assert layouts.restore(window, "Mine") is None
application.processEvents()
program.shutdown.close()
while not window.may_close:
    application.processEvents()
print("fine", refused > rounds * 0.9)
"""
LONG = [pytest.mark.long, pytest.mark.timeout(900)]


@pytest.mark.parametrize("rounds", [pytest.param(30, id="short"), pytest.param(2000, id="long", marks=LONG)])
def test_a_damaged_layout_never_reaches_qt(tmp_path: Path, rounds: int) -> None:
    environment = {**os.environ, "GRPO_LAB_HOME": str(tmp_path)}
    command = [sys.executable, "-c", LAYOUTS, "7", str(rounds)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=850, check=False)
    assert (done.returncode, done.stdout) == (0, "fine True\n"), done.stderr[-3000:]
