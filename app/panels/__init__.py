"""Panels, one dock each. A panel draws a ``View`` and never talks to the worker."""
