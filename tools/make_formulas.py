"""The formulas that are shipped drawn, so that the first window shows them without the library that draws them.

    python -m tools.make_formulas

To be run again when the terms of an objective are other ones, or with another version of ziamath; a test compares.
"""

from __future__ import annotations

import json
from pathlib import Path

from app.formula.difference import changed_terms
from app.formula.objective_terms import objective_terms
from app.formula.render import digest, drawn
from grpo_core.config import PRESETS, Settings, language_settings

PATH = Path(__file__).parents[1] / "resources" / "formulas.json"


def pieces() -> list[str]:
    """LaTeX of every piece of the objectives of the presets, of those that a first window has, and of a weighted one.

    And of every piece with which a change from the first objective to one of them is shown.
    """
    first = Settings().objective
    weighted = first.replace(importance_cap=1.0)
    objectives = [first, language_settings().objective, weighted, *(one.objective for one in PRESETS.values())]
    whole = {term.latex for objective in objectives for term in objective_terms(objective)}
    changes = {term.latex for objective in objectives for term in changed_terms(first, objective)}
    return sorted(whole | changes)


def made() -> dict[str, str]:
    """Return each piece as SVG.

    Raises:
        ValueError: one cannot be drawn.
    """
    drawings = {latex: drawn(latex) for latex in pieces()}
    if None in drawings.values():
        raise ValueError("a piece of an objective cannot be drawn")
    return {latex: source for latex, source in drawings.items() if source is not None}


def main() -> None:
    """Write the file."""
    drawings = made()
    text = json.dumps({"digest": digest(drawings), "drawings": drawings}, indent=0, sort_keys=True)
    PATH.write_text(text + "\n", encoding="utf-8")
    print(f"{PATH.name}: {len(drawings)} formulas, {PATH.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
