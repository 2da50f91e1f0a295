"""What the program's command lines share: their exit codes, and how they complain."""

from __future__ import annotations

import argparse
from typing import NoReturn

FAILED, INTERRUPTED = 2, 130
"""Exit codes after an error that was told in a sentence, and after Ctrl-C."""


class Parser(argparse.ArgumentParser):
    """A parser that complains in one sentence."""

    def error(self, message: str) -> NoReturn:
        """End the program with ``message`` as a sentence."""
        self.exit(FAILED, f"{message[:1].upper()}{message[1:]}; {self.prog} --help says what is possible.\n")
