"""The module that pip calls to build: :mod:`tools.package.backend`, importable from a folder of its own.

pip 25 and newer look for every module in the folder of ``backend-path`` first, and take any folder in there for a
module. Therefore this folder contains nothing else, and the root comes last on the path.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))

from tools.package.backend import *  # noqa: F403
