"""``python -m grpo_core``: the command line."""

import sys

from grpo_core.commands.cli import main

sys.exit(main())
