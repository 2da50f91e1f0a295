"""The GUI package under its installed name: ``app`` in the source tree is ``grpo_lab`` in a wheel.

Many people have a file named ``app`` of their own, and Python imports the first that it finds.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

HERE, INSTALLED = "app", "grpo_lab"


class Renaming:
    """Renamer of the GUI package in source text: imports, entry points, and modules named in text.

    A module is recognised by what follows the name: a file or folder of the package. Nothing else that is called
    ``app`` is changed.
    """

    def __init__(self, package: Path) -> None:
        """Read the names of the package's files and folders.

        Args:
            package: the folder ``app``.
        """
        self._below = {path.stem for path in package.iterdir() if path.suffix in ("", ".py")}
        below = "|".join(sorted(map(re.escape, self._below)))
        self._named = re.compile(
            rf"(?<![\w./-]){HERE}(?=(?:\.|/)(?:{below})\b)"  # app.theme, app/theme
            rf"|(?<=from ){HERE}(?= import )"
            rf"|(?<=-m ){HERE}\b"
        )

    def text(self, text: str) -> str:
        """Return ``text`` with the package's installed name."""
        return self._named.sub(INSTALLED, text)

    def module(self, text: str, name: str) -> str:
        """Return the source of a module with the package's installed name.

        Args:
            text: the source.
            name: name of its file, for error messages.

        Raises:
            ValueError: something would still refer to the old name: a remaining import, or the package as a variable.
        """
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import) and any(one.asname is None and _is_own(one.name) for one in node.names):
                raise ValueError(f"{name}, line {node.lineno}: write “from {HERE} import …”, which can be renamed.")
            if isinstance(node, ast.Attribute) and _is_name(node.value, HERE) and node.attr in self._below:
                raise ValueError(f"{name}, line {node.lineno}: “{HERE}.{node.attr}” is a variable's, not a module.")
        renamed = self.text(text)
        named = re.search(rf"\b{HERE}\b", renamed) is not None
        if named and any(_imports_own(node) for node in ast.walk(ast.parse(renamed))):
            raise ValueError(f"{name}: still imports {HERE} after the renaming.")
        return renamed


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_own(module: str) -> bool:
    return module.split(".")[0] == HERE


def _imports_own(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        return not node.level and _is_own(node.module or "")
    return isinstance(node, ast.Import) and any(_is_own(one.name) for one in node.names)
