"""The fuzz tests drive the same program as the stories."""

from tests.app.conftest import driver

__all__ = ["driver"]
