"""Create the small fonts that are shipped: subsets of Inter and JetBrains Mono, and the characters that both lack.

    python -m tools.make_fonts FOLDER      FOLDER contains, at any depth, the files named below

    python -m tools.make_fonts FOLDER zh-CN      only the fonts of that language

The files come from the Debian packages fonts-inter, fonts-jetbrains-mono, fonts-noto-core and fonts-noto-cjk. This
needs fonttools, which the program itself does not need. All fonts are under the SIL Open Font License.

The fonts of a language are in a folder with its code. They are made again when a translation uses new characters.
They complete Inter, so they have its height of a line, and thus another name.
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


CHINESE = "GRPO Lab Chinese"
CHINESE_FACES = ("NotoSansCJK-Regular.ttc", "NotoSansCJK-Bold.ttc")
SIMPLIFIED = 2
"""Number of Noto Sans CJK SC among the fonts of a collection."""
ASCENT, DESCENT = 969, 241
"""Height of a line of Inter above and below the baseline, in thousandths of the font's size."""


def main(folder: Path, language: str = "") -> None:
    """Write the subsets of the fonts in ``folder``, or only those of ``language``."""
    if language in ("", "zh-CN"):
        for face in CHINESE_FACES:
            write_chinese(next(folder.rglob(face)))
    if language:
        return
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


def write_chinese(source: Path) -> None:
    """Write the characters of GB 2312 and of the translation, with punctuation and forms of full width."""
    from fontTools.subset import Options, Subsetter, load_font, save_font

    options = Options(layout_features=[], hinting=False, font_number=SIMPLIFIED)
    font = load_font(str(source), options)
    subsetter = Subsetter(options)
    subsetter.populate(unicodes=sorted(chinese_codes()))
    subsetter.subset(font)
    weight = source.stem.partition("-")[2]
    for record in font["name"].names:
        whole = {1: CHINESE, 4: f"{CHINESE} {weight}", 6: f"{CHINESE.replace(' ', '')}-{weight}", 16: CHINESE}
        record.string = whole.get(record.nameID, record.toUnicode())
    lines, shape = font["hhea"], font["OS/2"]
    lines.ascent, lines.descent, lines.lineGap = ASCENT, -DESCENT, 0
    shape.sTypoAscender, shape.sTypoDescender, shape.sTypoLineGap = ASCENT, -DESCENT, 0
    shape.usWinAscent, shape.usWinDescent = ASCENT, DESCENT
    target = OUT / "zh-CN" / f"Chinese-{weight}.otf"
    target.parent.mkdir(exist_ok=True)
    save_font(font, str(target), options)
    print(f"{target}  {target.stat().st_size / 1000:.0f} kB")


def chinese_codes() -> set[int]:
    """Return the characters of the Chinese font."""
    pairs = (bytes((row, cell)) for row in range(0xA1, 0xF8) for cell in range(0xA1, 0xFF))
    every = {ord(sign) for pair in pairs for sign in pair.decode("gb2312", "ignore")}
    foreign = {*range(0x370, 0x530), *range(0x3040, 0x3100), *range(0x2500, 0x2580)}  # Greek, Cyrillic, kana, boxes
    used = {ord(sign) for sign in Path("resources/translations/zh_CN.ts").read_text("utf-8") if ord(sign) >= 0x2E80}
    return (every - foreign) | used | {*range(0x20, 0x7F), *range(0x3000, 0x3020), *range(0xFF01, 0xFF5F)}


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:3])
