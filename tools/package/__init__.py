"""Packaging with ``make package``: one folder and one archive that do not need Python. ``build.spec`` in the root
defines their contents.
"""
