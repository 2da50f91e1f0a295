"""Packaging with ``make package-windows``: the package and the installer for Windows, built and tried on Linux under
Wine.

Wine runs the same recipe (:mod:`tools.package`) with Windows' own CPython and wheels, so that the result is that of a
Windows machine; no part of Wine is included. package_recipes/README.md lists what cannot be verified under Wine.
"""
