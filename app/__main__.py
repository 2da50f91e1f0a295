"""The entry point, ``python -m app``."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from app import parts
from grpo_core import __version__
from grpo_core.child.start import COMMAND
from grpo_core.child.start import start as start_child

DRAWING = {
    "export": "Exporting pictures draws the window's panels, which needs Qt",
    "film": "A film is drawn by the window's panels, which needs Qt",
    "--self-test": "The self-test tries the window too, which needs Qt",
    "--problem-report": "The problem report names the version of Qt",
    **parts.command_reasons(),
}
"""Commands that need Qt but not the window, and the reason.

They are in ``app`` because the core has no access to Qt.
"""
QT_LACKING = "No module named 'PySide6'"


def main() -> int:
    """Run the program. Return the exit status of the process."""
    multiprocessing.freeze_support()  # first, because a frozen child process, even of a library, must not open a window
    if sys.argv[1:2] == [COMMAND]:
        start_child(sys.argv[2:])
        return 0
    if len(sys.argv) > 1 and sys.argv[1].isalpha():
        _choose_language(sys.argv[1:])  # before the modules of commands are imported
    if len(sys.argv) > 1 and is_command(sys.argv[1]):
        from grpo_core.commands import cli

        return cli.main(sys.argv[1:])
    if needs_no_qt(sys.argv[1:]):
        return _about(sys.argv[1:])
    try:
        from app import language

        skip_feature_detection()
        untranslated = language.choose(sys.argv[1:])  # before importing any module with translatable strings
        from app.start import start
    except ImportError as error:
        why = lacking(str(error), sys.argv[1:])
        if not why:
            raise
        print(why, file=sys.stderr)
        return 1
    if untranslated:
        print(untranslated, file=sys.stderr)
    return start(sys.argv[1:])


def skip_feature_detection() -> None:
    """Keep PySide6 from reading the source code of every module that is imported after it.

    PySide6 looks for modules that use Qt, because such a module can select another spelling of Qt's names (“from
    __feature__ import snake_case”). No module here does, nor in the libraries. Reading a thousand files takes 90 ms of
    the start.
    """
    import PySide6.QtCore  # noqa: F401 # loads the module below

    feature: Any = sys.modules.get("shibokensupport.feature")
    if hasattr(feature, "_mod_uses_pyside"):
        feature._mod_uses_pyside = lambda module: True


def _choose_language(arguments: Sequence[str]) -> None:
    """Choose the language in which a command speaks to a person: English if Qt, which reads catalogues, is missing.

    Qt is not even loaded, which takes 60 ms, where the language is English anyway.
    """
    named = next(filter(None, map(os.environ.get, ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"))), "C")
    english = sys.platform == "linux" and named.startswith(("C", "POSIX", "en"))
    with suppress(ImportError):
        from app.folders import remembered_language

        if "--json" not in arguments and (remembered_language() or not english):
            from app import language

            language.choose(())


def is_command(argument: str) -> bool:
    """Return whether an argument is one of the commands that need no window, for example “train”.

    A plain word that is neither a command nor a file counts as a mistyped command, so that the commands' parser
    lists all of them.
    """
    if argument in DRAWING or not (argument.isascii() and argument.isalpha()):
        return False
    from grpo_core.commands import cli

    return argument in cli.names() or not Path(argument).exists()


def needs_no_qt(arguments: Sequence[str]) -> bool:
    """Return whether only the help text or the version is requested."""
    return bool({"-h", "--help", "--version"} & set(arguments)) and arguments[0] not in DRAWING


def _about(arguments: Sequence[str]) -> int:
    from app.arguments import parser
    from app.build import described

    if parser().parse_args(arguments).version:
        print(described())
    return 0


def lacking(message: str, arguments: Sequence[str] = ()) -> str:
    """Return a message about what to install if Qt, or a system library that it needs, is missing.

    Empty for other errors.
    """
    if message == QT_LACKING:
        why = next((DRAWING[argument] for argument in arguments if argument in DRAWING), "The window needs Qt")
        wheel = f"grpo_lab-{__version__}-py3-none-any.whl"
        return (
            f"{why}. Qt is not installed; install it with the wheel's extra “app”: pip install '{wheel}[app]'. "
            "Commands such as “grpo-lab train --help” work without it."
        )
    library, marker, _ = message.partition(": cannot open shared object file")
    if not marker:
        return ""
    return (
        f"GRPO Lab cannot open a window, because the system lacks {library}. Install it: on Debian and Ubuntu "
        "“sudo apt install libgl1 libegl1 libxcb1 libfontconfig1”, on Fedora “sudo dnf install mesa-libGL mesa-libEGL "
        "libxcb fontconfig”."
    )


if __name__ == "__main__":
    sys.exit(main())
