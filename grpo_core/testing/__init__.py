"""Checks of the rows of a package, for the tests of its author. Our own rows pass the same checks.

With the package installed, a test file needs only this::

    import pytest
    from grpo_core.testing import checks

    @pytest.mark.parametrize("check", checks("my-package"), ids=str)
    def test_row(check):
        check()

Without pytest, ``python -m grpo_core.testing my-package`` runs them and prints one line each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from grpo_core import doors


@dataclass(frozen=True, kw_only=True)
class Check:
    """A check of one row. Calling it raises AssertionError if the check fails.

    Attributes:
        row: name of the row.
        name: name of the check.
        run: function of the row's name.
    """

    row: str
    name: str
    run: Callable[[str], None]

    def __call__(self) -> None:
        self.run(self.row)

    def __str__(self) -> str:
        return f"{self.row}-{self.name}"


def checks(package: str) -> list[Check]:
    """Return the checks of all rows of an installed package.

    Raises:
        LookupError: there is no such package, or one of its rows cannot be used.
    """
    found = [offer for offer in doors.offers() if offer.package == package]
    if not found:
        raise LookupError(f"No installed package “{package}” has entry points of the group “{doors.GROUP}”.")
    for offer in found:
        if why := doors.refusal(offer.kind, offer.id):
            raise LookupError(why)
    return [
        Check(row=offer.id, name=name, run=run) for offer in found for name, run in doors.checks_of(offer.kind).items()
    ]
