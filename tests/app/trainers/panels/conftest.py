"""The fixture that brings a panel to the front, for the panels of this part too."""

from tests.app.panels.conftest import front

__all__ = ["front"]
