"""Panels, each in its own dock. A panel draws a ``View`` and never talks to the worker."""
