"""Checks of the rows of a package, for the tests of its author. Our own rows pass the same checks.

With the package installed, its test file needs only this::

    import pytest
    from grpo_core.testing import checks

    CHECKS = checks("my-package")

    @pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
    def test_row(check):
        check()
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from grpo_core import plugins


def checks(package: str) -> dict[str, Callable[[], None]]:
    """Return the checks of all rows of an installed package by name. Each raises an error if it fails.

    Raises:
        LookupError: there is no such package, or one of its rows cannot be used.
    """
    found = [offer for offer in plugins.offers() if offer.package == package]
    if not found:
        raise LookupError(f"No installed package “{package}” has entry points of the group “{plugins.GROUP}”.")
    for offer in found:
        if why := plugins.refusal(offer.kind, offer.id):
            raise LookupError(why)
    return {
        f"{offer.id}-{name}": partial(check, offer.id)
        for offer in found
        for name, check in plugins.checks_of(offer.kind).items()
    }
