"""Make the small fonts that are shipped: subsets of Inter and JetBrains Mono, with tabular figures.

    python -m tools.make_fonts FOLDER      FOLDER holds Inter-Regular.otf, Inter-SemiBold.otf, JetBrainsMono-*.ttf

Needs fonttools, which the program itself does not. Both families are under the SIL Open Font License.
"""

from __future__ import annotations

import sys
from pathlib import Path

OUT = Path("resources/fonts")
FACES = ("Inter-Regular.otf", "Inter-SemiBold.otf", "JetBrainsMono-Regular.ttf", "JetBrainsMono-Bold.ttf")
RANGES = (
    (0x20, 0x7E), (0xA0, 0x17F), (0x2B0, 0x2FF), (0x370, 0x3FF), (0x2000, 0x206F), (0x2070, 0x209F), (0x2100, 0x214F),
    (0x2190, 0x21FF), (0x2200, 0x22FF), (0x2300, 0x23FF), (0x2500, 0x25FF), (0x2600, 0x266F), (0x2700, 0x27BF),
)  # fmt: skip


def main(folder: Path) -> None:
    """Write the subsets of the faces in ``folder``."""
    from fontTools.subset import Options, Subsetter, load_font, save_font

    for face in FACES:
        source = next(folder.rglob(face))
        options = Options(layout_features=["kern", "mark", "mkmk", "ccmp", "locl", "tnum", "lnum", "calt"])
        options.name_IDs = ["*"]
        font = load_font(str(source), options)
        subsetter = Subsetter(options)
        subsetter.populate(unicodes=[code for low, high in RANGES for code in range(low, high + 1)])
        subsetter.subset(font)
        target = OUT / face
        save_font(font, str(target), options)
        print(f"{target}  {target.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
