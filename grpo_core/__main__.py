"""Entry point of the command line, ``python -m grpo_core``."""

import sys

from grpo_core.commands.cli import main

sys.exit(main())
