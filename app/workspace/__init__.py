"""The model behind the window: runs, cursor, selection and edited settings.

Panels see only the ``View`` in ``view.py``.
"""
