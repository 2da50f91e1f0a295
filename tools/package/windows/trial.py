"""Try what was built for Windows: the unpacked archive, its window, and the installer from beginning to end."""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.package.screen import picture, press, screen
from tools.package.started import painted
from tools.package.trial import NAME
from tools.package.windows import wine
from tools.package.windows.places import BUILD, DIST, WINE_ONLY

SELF_TEST_SECONDS = 300.0
CLOSING_SECONDS = 60.0
TRAINED_SECONDS = 8.0
"""Time in seconds that a run in the window trains before the screenshot is taken."""
TRIES = 3
LEAST_COLOURS = 500
"""Minimum number of colours in a screenshot. A window with a run has thousands, an empty screen one."""
CLASSES = r"HKCU\Software\Classes"


def archive(path: Path) -> None:
    """Run the self-test of the unpacked archive, and open its window.

    Raises:
        SystemExit: a check fails.
    """
    with _place() as place:
        shutil.unpack_archive(path, place)
        (folder,) = place.iterdir()
        _lend(folder)
        _self_test(folder)
        seconds = window(folder, DIST / f"{folder.name}.png")
    print(
        f"The window on Qt's windows platform was painted {seconds:.2f} s after the start of the process.", flush=True
    )


def installer(path: Path) -> None:
    """Install silently, run the self-test, inspect the registry, uninstall silently, and look for leftover files.

    Raises:
        SystemExit: a check fails.
    """
    with _place() as place:
        # into the default folder; one given with /D could not contain a space, since Wine quotes it
        target = next((BUILD / "prefix" / "drive_c" / "users").glob("*/AppData/Local")) / "Programs" / "GRPO Lab"
        installed = "\\".join(["C:", *target.relative_to(BUILD / "prefix" / "drive_c").parts])
        shutil.rmtree(target, ignore_errors=True)
        shutil.copyfile(path, place / "setup.exe")
        _expect(
            "the installer runs",
            wine.run("setup.exe", "/S", cwd=place, timeout=SELF_TEST_SECONDS) == 0,
        )
        _expect("the program is installed", (target / "grpo-lab.exe").is_file())
        for suffix in ("grpo", "grposession"):
            kind = _registered(rf"{CLASSES}\.{suffix}")
            _expect(
                f".{suffix} is registered",
                f"{installed}\\grpo-lab.exe" in _registered(rf"{CLASSES}\{kind}\shell\open\command"),
            )
        menu = [path.name for path in (BUILD / "prefix").rglob("GRPO Lab.lnk")]
        _expect("the start menu has it", menu == ["GRPO Lab.lnk"])
        _lend(target)
        _self_test(target)
        for path in WINE_ONLY.iterdir():
            (target / path.name).unlink()
        (target / "mine.grpo").write_text("not the program's")
        # if run from a copy, as by Windows, it would return before it is done
        gone = wine.run(str(target / "uninstall.exe"), "/S", f"_?={installed}", cwd=place, timeout=SELF_TEST_SECONDS)
        _expect("the uninstaller runs", gone == 0)
        left = sorted(path.name for path in target.rglob("*"))
        _expect(f"only what the user put there is left, and not {left}", left == ["mine.grpo"])
        for suffix in ("grpo", "grposession"):
            _expect(f".{suffix} is taken back", not _registered(rf"{CLASSES}\.{suffix}"))
        _expect("the start menu is as before", not list((BUILD / "prefix").rglob("GRPO Lab.lnk")))


def window(folder: Path, target: Path) -> float:
    """Open the window, train, take a screenshot and close it. Return the seconds from the start to the first painted
    window.
    """
    home = Path(tempfile.mkdtemp(prefix="home-", dir=BUILD))
    with screen() as display:
        process = wine.start(
            str(folder / "grpo-lab.exe"),
            cwd=folder,
            environment={"DISPLAY": display, "GRPO_LAB_HOME": _windows_path(home), "QT_QPA_PLATFORM": "windows"},
        )
        try:
            seconds = painted(home, lambda: process.poll() is None)
            _train(display, home)
            colours = picture(display, target)
            press(display, "alt+F4")
            process.communicate(timeout=CLOSING_SECONDS)
        finally:
            process.kill()
    _expect(f"the window shows something ({colours} colours, {target})", colours > LEAST_COLOURS)
    _expect("the window closes", process.returncode == 0)
    _expect("the run that was trained is kept", any(path.stat().st_size for path in home.rglob("*.grpo")))
    shutil.rmtree(home)
    return seconds


def _train(display: str, home: Path) -> None:
    """Press Run until there is a run file, since a painted window may not have the keyboard focus yet. Then wait."""
    for _ in range(TRIES):
        press(display, "ctrl+space")
        time.sleep(TRAINED_SECONDS)
        if any(home.rglob("*.grpo")):
            return
    raise SystemExit("No key reaches the window, or no run begins.")


def _self_test(folder: Path) -> None:
    status = wine.run(str(folder / "grpo-lab-console.exe"), "--self-test", cwd=folder, timeout=SELF_TEST_SECONDS)
    _expect("the self-test holds", status == 0)


@contextmanager
def _place() -> Iterator[Path]:
    """Yield a folder with spaces and letters of several alphabets in its name."""
    with tempfile.TemporaryDirectory(prefix="grpo-lab-trial-", dir=BUILD) as made:
        place = Path(made, NAME)
        place.mkdir()
        try:
            yield place
        finally:
            wine.stop()


def _lend(folder: Path) -> None:
    """Put the files that only Wine needs next to the program."""
    for path in WINE_ONLY.iterdir():
        shutil.copyfile(path, folder / path.name)


def _registered(key: str) -> str:
    """Return the default value of a registry key. Empty if there is none."""
    process = wine.start("reg.exe", "query", key, "/ve", cwd=BUILD)
    said, _ = process.communicate(timeout=60)
    found = re.search(r"REG_SZ\s+(.*)", said)
    return found[1].strip() if found and process.returncode == 0 else ""


def _windows_path(path: Path) -> str:
    return "Z:" + str(path.resolve()).replace("/", "\\")


def _expect(what: str, holds: bool) -> None:
    if not holds:
        raise SystemExit(f"It does not hold that {what}.")
    print(f"ok  {what}", flush=True)
