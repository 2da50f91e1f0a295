"""Commands in another Python that has torch, because nothing can be installed into a packaged program."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence

from grpo_core.child.start import preamble
from grpo_core.errors import GrpoError
from grpo_core.host.other_python import examined, requirements

_CODE = "from grpo_core.commands.cli import main; sys.exit(main(sys.argv[1:], here=True))"


def run_in_python(path: str, arguments: Sequence[str]) -> int:
    """Run this program's command line with ``arguments`` in the Python at ``path``. Return its exit status.

    Raises:
        GrpoError: that Python cannot be used.
    """
    python = examined(path)
    if why := python.refusal(requirements(""), gpu=False):
        raise GrpoError(why)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the other process too
    try:
        return subprocess.run([python.path, "-c", preamble() + _CODE, *arguments], check=False).returncode
    finally:
        signal.signal(signal.SIGINT, before)
