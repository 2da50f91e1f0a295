"""``make package-windows``: the package and the installer for Windows, made and tried on Linux under Wine.

Wine runs the same recipe (:mod:`tools.package`) with Windows' own CPython and wheels, so that it makes what a Windows
machine would make; nothing of Wine goes into it. What Wine cannot prove, packaging/README.md says.
"""
