"""Create the small fonts that are shipped: subsets of Inter and JetBrains Mono, and the characters that both lack.

    python -m tools.make_fonts FOLDER      FOLDER contains, at any depth, the files named below

The files come from the Debian packages fonts-inter, fonts-jetbrains-mono and fonts-noto-core. This needs fonttools,
which the program itself does not need. All fonts are under the SIL Open Font License.
"""

from __future__ import annotations

import sys
from pathlib import Path

OUT = Path("resources/fonts")
FACES = ("Inter-Regular.otf", "Inter-SemiBold.otf", "JetBrainsMono-Regular.ttf", "JetBrainsMono-Bold.ttf")
RANGES = (
    (0x20, 0x7E),
    (0xA0, 0x17F),
    (0x2B0, 0x2FF),
    (0x370, 0x3FF),
    (0x2000, 0x206F),
    (0x2070, 0x209F),
    (0x2100, 0x214F),
    (0x2190, 0x21FF),
    (0x2200, 0x22FF),
    (0x2300, 0x23FF),
    (0x2500, 0x25FF),
    (0x2600, 0x266F),
    (0x2700, 0x27BF),
)
SIGNS = {
    "NotoSansMath-Regular.ttf": "∇∈∉∋∘∝≡⊂⊆⊕⊗⋯⋮⟨⟩⌊⌋⌈⌉⦃⦄↵↩▯𝔼ℒ",
    "NotoSansSymbols2-Regular.ttf": "▸◂○⏎␣▮✕",
    "NotoSans-Regular.ttf": "‖⁻ₙᵢⱼₜᵀ",
}
"""Characters taken from each additional font."""


def main(folder: Path) -> None:
    """Write the subsets of the fonts in ``folder``."""
    codes = [code for low, high in RANGES for code in range(low, high + 1)]
    for face in FACES:
        write_subset(next(folder.rglob(face)), codes)
    for face, signs in SIGNS.items():
        write_subset(next(folder.rglob(face)), [ord(sign) for sign in signs])


def write_subset(source: Path, codes: list[int]) -> None:
    """Write a subset of ``source`` with those ``codes`` that it has to a file of the same name."""
    from fontTools.subset import Options, Subsetter, load_font, save_font

    options = Options(layout_features=["kern", "mark", "mkmk", "ccmp", "locl", "tnum", "lnum", "calt"])
    options.name_IDs = ["*"]
    font = load_font(str(source), options)
    subsetter = Subsetter(options)
    subsetter.populate(unicodes=codes)
    subsetter.subset(font)
    target = OUT / source.name
    save_font(font, str(target), options)
    print(f"{target}  {target.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
