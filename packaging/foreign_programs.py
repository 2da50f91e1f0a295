"""Runs before the program: other programs that it starts, such as a browser, must not find its libraries."""

import os
import sys

if sys.platform == "linux":
    # The start program has set it for this process alone, whose loader has read it by now.
    before = os.environ.pop("LD_LIBRARY_PATH_ORIG", None)
    if before is None:
        os.environ.pop("LD_LIBRARY_PATH", None)
    else:
        os.environ["LD_LIBRARY_PATH"] = before
