"""The command that starts a child process, and the code that runs first in it.

A child is a new interpreter that imports one function and calls it with its end of a connection. This resembles
Python's own ``multiprocessing`` with “spawn”, except that nothing is pickled, the parent's main module is not imported
again, there is no resource tracker process, and a child can have children. In a packaged program, which has no
interpreter, the program starts itself with :data:`COMMAND`. A child can also run in another Python of the user, which
imports ``grpo_core`` from this copy (:func:`preamble`).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib import import_module
from typing import TYPE_CHECKING, Any

from grpo_core import __version__, plugins, text
from grpo_core.child.lifeline import live_with_parent, watch_parent
from grpo_core.child.limits import Limits
from grpo_core.shipped import core_source
from grpo_core.text import tr

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Main = Callable[["Connection"], None]
"""Main function of a child process. It must be at the top level of a module, since it is looked up by name."""
COMMAND = "--child-process"
"""First argument of the packaged program when it runs as a child."""
NO_MEMORY = 12
"""Exit code of a process that ran out of memory."""
_PREAMBLE = """import os, sys
sys.dont_write_bytecode = True
os.environ.update(PYTHONDONTWRITEBYTECODE="1", {packages}={offered!r})
sys.path[:] = [{source!r}, *filter(None, sys.path)]
if sys.platform == "win32":
    import ctypes
    ctypes.windll.kernel32.SetDllDirectoryW(None)
from grpo_core import __version__
if __version__ != {version!r}:
    sys.exit({replaced!r})
"""


def preamble() -> str:
    """Return code with which another Python imports ``grpo_core`` from this copy of the program, and nothing from the
    current folder. It writes nothing beside the source, and ends with a message if the program has been replaced since
    it was started. On Windows, a packaged program passes on the folder of its libraries.
    """
    return _PREAMBLE.format(
        source=str(core_source()),
        version=__version__,
        replaced=tr("the program was replaced by another version while it was open; start it again"),
        packages=plugins.ENVIRONMENT,
        offered=os.environ.get(plugins.ENVIRONMENT, ""),
    )


def command(main: Main, handle: int, limits: Limits, python: str = "") -> list[str]:
    """Return the command line of a child that calls ``main`` and uses the language of this process.

    Args:
        python: path of another Python in which it runs, in English, because that Python need not have Qt.
    """
    plugins.offers()  # packages are looked for in this process, and the child inherits the result
    chooser = text.chooser()
    if python:
        code, chooser = f"{preamble()}from grpo_core.child.start import start; start(sys.argv[1:])", ()
        begin = [python, "-c", code]
    elif getattr(sys, "frozen", False):
        begin = [sys.executable, COMMAND]
    else:
        code = f"import sys; sys.path[:] = {sys.path!r}; from grpo_core.child.start import start; start(sys.argv[1:])"
        begin = [sys.executable, "-c", code]
    return [*begin, f"{main.__module__}:{main.__qualname__}", str(handle), json.dumps(asdict(limits)), *chooser]


def start(arguments: Sequence[str]) -> None:
    """Run a child process as specified by the last three ``arguments`` of its command line."""
    name, handle, described, *chooser = arguments
    limits = Limits(**json.loads(described))
    _keep_from_children(int(handle))
    live_with_parent()
    if not limits.encloses:
        watch_parent()
    limits.apply()
    connection = _connection(int(handle))
    try:
        if chooser:  # before any module with texts is imported
            _named(chooser[0])(*chooser[1:])
        main: Main = _named(name)
        main(connection)
    except MemoryError:
        raise SystemExit(NO_MEMORY) from None


def _named(name: str) -> Any:
    """Return the function whose name is given in the form “module:function”."""
    module, _, function = name.partition(":")
    return getattr(import_module(module), function)


def _keep_from_children(handle: int) -> None:
    if sys.platform == "win32":
        os.set_handle_inheritable(handle, False)
    else:
        os.set_inheritable(handle, False)


def _connection(handle: int) -> Connection:
    if sys.platform == "win32":
        from multiprocessing.connection import PipeConnection

        return PipeConnection(handle)
    from multiprocessing.connection import Connection

    return Connection(handle)
