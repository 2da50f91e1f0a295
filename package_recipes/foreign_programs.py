"""Runs before the program: other programs that it starts, such as a browser, must not find its libraries.

Processes of its own must. The start program sets LD_LIBRARY_PATH and starts itself anew, so that the loader reads it,
but not in a process that has inherited the environment of one that did so (``pyi_main.c`` of PyInstaller 6, "process
level"). The processes of runs and of the queue are told to start like the first one.
"""

import os
import sys

if sys.platform == "linux":
    # The start program has set it for this process alone, whose loader has read it by now.
    before = os.environ.pop("LD_LIBRARY_PATH_ORIG", None)
    if before is None:
        os.environ.pop("LD_LIBRARY_PATH", None)
    else:
        os.environ["LD_LIBRARY_PATH"] = before
    # The start program takes this away again in each process; there this file runs too, and sets it for the next.
    os.environ["PYINSTALLER_RESET_ENVIRONMENT"] = "1"
