"""Command ``python -m grpo_core.testing PACKAGE``, which runs the checks of a package's rows."""

from __future__ import annotations

import sys
import traceback

from grpo_core.testing import checks


def main(package: str) -> int:
    """Run the checks and print one line each. Return 0 if all pass, otherwise 1."""
    failed, every = 0, checks(package)
    for check in every:
        try:
            check()
        except Exception:  # any error fails the check; the next one is run nevertheless
            failed += 1
            print(f"failed  {check}", traceback.format_exc(), sep="\n", flush=True)
        else:
            print(f"passed  {check}", flush=True)
    print(f"{failed} of {len(every)} checks failed." if failed else f"All {len(every)} checks hold.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
