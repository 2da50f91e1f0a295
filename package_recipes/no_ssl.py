"""Runs before the slim program: pyarrow asks ssl for certificates, and nothing needs the 7 MB of OpenSSL behind it."""

import sys
from types import ModuleType, SimpleNamespace


class StandIn(ModuleType):
    """Knows no certificates. The standard library names errors and sockets of ssl, which never occur."""

    @staticmethod
    def get_default_verify_paths() -> SimpleNamespace:
        return SimpleNamespace(cafile=None, capath=None)

    def __getattr__(self, name: str) -> type[OSError]:
        if name.startswith("SSL"):
            return OSError
        raise AttributeError(name)


sys.modules["ssl"] = StandIn("ssl")
