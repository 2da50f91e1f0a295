"""Render the shipped formulas, so that the first window can show them without the rendering library.

    python -m tools.make_formulas

Run this again when the terms of an objective change, or with another version of ziamath; a test checks this.
"""

from __future__ import annotations

import json
from pathlib import Path

from app.formula.objective_terms import changed_terms, objective_terms
from app.formula.render import digest, drawn
from grpo_core.config import PRESETS, Settings, language_settings

PATH = Path(__file__).parents[1] / "resources" / "formulas.json"


def pieces() -> list[str]:
    """Return the LaTeX of every piece of the objectives of the presets, of the default bandit and language model, and
    of one with importance weights.

    Also included is every piece that is needed to show a change from the bandit's objective to one of the others.
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
        ValueError: a piece cannot be drawn.
    """
    drawings = {latex: drawn(latex) for latex in pieces()}
    if None in drawings.values():
        raise ValueError("a piece of an objective cannot be drawn")
    return {latex: source for latex, source in drawings.items() if source is not None}


def main() -> None:
    """Write the file of rendered formulas."""
    drawings = made()
    text = json.dumps({"digest": digest(drawings), "drawings": drawings}, indent=0, sort_keys=True)
    PATH.write_text(text + "\n", encoding="utf-8")
    print(f"{PATH.name}: {len(drawings)} formulas, {PATH.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
