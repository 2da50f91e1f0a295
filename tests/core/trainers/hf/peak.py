"""Peak memory, in bytes, of a process that trains a model from a folder for two updates, on Linux.

Run as ``python -m tests.core.trainers.hf.peak FOLDER SETTINGS``, with the settings as JSON. Prints the estimate and the
measurement.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from grpo_core.trainers.hf.folder import look
from grpo_core.trainers.hf.learner import FolderLearner
from grpo_core.trainers.hf.memory import need
from tests.core.trainers.hf.tiny import small


def main() -> None:
    folder, changes = Path(sys.argv[1]), json.loads(sys.argv[2])
    settings = small(folder, **changes)
    learner = FolderLearner(settings)
    for _ in range(2):
        next(learner)
    status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    most = next(line for line in status if line.startswith("VmHWM"))
    print(json.dumps([need(look(folder), settings).whole, 1024 * int(most.split()[1])]))


if __name__ == "__main__":
    main()
