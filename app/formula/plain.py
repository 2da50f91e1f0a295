"""A formula as one line of plain text, for screen readers and tooltips, and as a fallback."""

from __future__ import annotations

import re
from functools import lru_cache

from grpo_core.text import tr

_SIGNS = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "varepsilon": "ε", "theta": "θ",
    "lambda": "λ", "mu": "μ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ", "varphi": "φ", "eta": "η",
    "Delta": "Δ", "Sigma": "Σ", "Phi": "Φ", "Pi": "Π", "Omega": "Ω",
    "sum": "Σ", "prod": "Π", "nabla": "∇", "partial": "∂", "cdot": " · ", "times": " × ", "le": " ≤ ", "leq": " ≤ ",
    "ge": " ≥ ", "geq": " ≥ ", "ne": "≠", "neq": "≠", "approx": " ≈ ", "propto": "∝", "in": " ∈ ", "infty": "∞",
    "to": "→", "pm": "±", "mid": " | ", "vert": "|", "Vert": "‖", "|": "‖", "ldots": "…", "cdots": "…", "dots": "…",
    "sqrt": "√", "ell": "ℓ", "quad": " ", "qquad": " ", ",": " ", ";": " ", ":": " ", " ": " ", "!": "", "\\": "; ",
    "{": "{", "}": "}", "%": "%", "_": "_", "&": "&", "rightarrow": "→", "leftarrow": "←", "langle": "⟨",
    "rangle": "⟩", "top": "ᵀ", "circ": "∘", "ast": "*", "star": "*",
}  # fmt: skip # table, one row per line
_WRAPPERS = (
    "mathrm", "mathbf", "mathit", "mathcal", "mathbb", "mathsf", "text", "textbf", "operatorname", "vec",
    "boldsymbol",
)  # fmt: skip # table, one row per line
_ACCENTS = {"bar": "\u0304", "overline": "\u0304", "hat": "\u0302", "tilde": "\u0303"}
"""Combining characters, which follow a letter."""
_SAID = {"\u0304": tr("bar", "accent"), "\u0302": tr("hat", "accent"), "\u0303": tr("tilde", "accent")}
_DROPPED = ("left", "right", "big", "Big", "bigl", "bigr", "Bigl", "Bigr", "displaystyle", "textstyle", "limits")
_GROUP = r"\{([^{}]*)\}"


def spoken_formula(text: str) -> str:
    """Return a :func:`plain_text` with its accents as words, which screen readers would leave out."""
    return re.sub("[" + "".join(_SAID) + "]", lambda accent: f" {_SAID[accent[0]]} ", text).replace("  ", " ").strip()


@lru_cache(maxsize=1024)
def plain_text(latex: str) -> str:
    """Return ``latex`` as one line of Unicode."""
    text = re.sub(rf"\\(?:{'|'.join(_DROPPED)})(?![A-Za-z])\s?", "", latex).replace(r"\{", "⦃").replace(r"\}", "⦄")
    before = None
    while before != text:
        before = text
        text = re.sub(rf"\\(?:{'|'.join(_WRAPPERS)})\s*{_GROUP}", r"\1", text)
        text = re.sub(rf"\\({'|'.join(_ACCENTS)})\s*(?:{_GROUP}|(\w))", _accented, text)
        text = re.sub(rf"\\[dt]?frac\s*{_GROUP}\s*{_GROUP}", _fraction, text)
        text = re.sub(rf"\\sqrt\s*{_GROUP}", r"√(\1)", text)
        text = re.sub(rf"([_^]){_GROUP}", _script, text)
    text = re.sub(r"\\([A-Za-z]+|.)\s?", _command, text)
    text = text.replace("{", "").replace("}", "").replace("⦃", "{").replace("⦄", "}").replace("&", " ")
    return re.sub(r"\s+", " ", text.replace("-", "−").replace("~", " ")).strip()


def _accented(match: re.Match[str]) -> str:
    return (match[2] or match[3]) + _ACCENTS[match[1]]


def _fraction(match: re.Match[str]) -> str:
    return f"{_bracketed(match[1])} / {_bracketed(match[2])}"


def _script(match: re.Match[str]) -> str:
    return match[1] + (match[2] if len(match[2].strip()) <= 1 or match[1] == "_" else f"({match[2]})")


def _bracketed(text: str) -> str:
    text = text.strip()
    return text if re.fullmatch(r"[\w.\\ ]*", text) and " " not in text else f"({text})"


def _command(match: re.Match[str]) -> str:
    name = match[1]
    return _SIGNS.get(name, name + " " if match[0].endswith(" ") else name)
