"""The model behind the window: runs, cursor, selection and edited settings. ``view.py`` is all that a panel sees."""
