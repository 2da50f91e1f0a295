"""Contents of a package, and what is left out. ``build.spec`` reads this module. The package's
self-test verifies it.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

from app import parts as window_parts
from grpo_core import parts as core_parts
from grpo_core.shipped import CORE_SOURCE
from tools.package import qt_plugins

HIDDEN = ("ziamath", "ziafont", "latex2mathml")
"""Modules imported by name at the first formula, which static analysis does not find."""
WHOLE = ("array_api_compat.common", "array_api_compat.numpy", "array_api_compat.torch")
"""Packages that import their own modules by computed names."""
PARTS = (
    "grpo_core.surrogates",
    *(module.rpartition(".")[0] for module in (*core_parts.PARTS.values(), *window_parts.PARTS.values())),
)
"""Packages of the program whose modules are imported by names in a list."""
METADATA = ("latex2mathml", "gguf")
"""Packages that look up their own version when they are imported."""
OF_MODELS = ("transformers", "peft")
"""Packages that also look up the versions of all their dependencies."""

OF_CORE = ("grpo_core", "array_api_compat", "tqdm")
"""Packages whose source is included for another Python: the core, and what it needs that torch does not bring along."""

_WITHOUT = {
    "tests and what makes programs": (
        "_pytest", "hypothesis", "idlelib", "lib2to3", "mypy", "numpy.distutils", "numpy.f2py", "pip", "pkg_resources",
        "pytest", "pytestqt", "test", "turtle", "distutils", "fontTools",
    ),
    "other libraries for windows, notebooks and plots, which pyqtgraph takes where it finds them": (
        "IPython", "PIL", "colorcet", "cupy", "h5py", "jupyter_rfb", "matplotlib", "notebook", "numba", "numexpr",
        "qtpy", "scipy", "superqt", "tkinter",
    ),
    "parts of pyqtgraph that no panel is made of": (
        "pyqtgraph.canvas", "pyqtgraph.console", "pyqtgraph.dockarea", "pyqtgraph.examples", "pyqtgraph.flowchart",
        "pyqtgraph.jupyter", "pyqtgraph.opengl",
    ),
    "nothing draws with OpenGL; package_recipes/no_opengl.py stands in for what pyqtgraph imports": (
        "OpenGL", "PySide6.QtOpenGL", "PySide6.QtOpenGLWidgets",
    ),
    "nothing is printed: pictures are exported as PDF, which is in Qt's own library": ("PySide6.QtPrintSupport",),
    "nothing is fetched": ("PySide6.QtNetwork", "hf_xet"),
    "for tests of windows": ("PySide6.QtTest",),
    "Parquet files are read from this computer, one by one, by no server and no query language": (
        "pyarrow._acero", "pyarrow._azurefs", "pyarrow._csv", "pyarrow._dataset", "pyarrow._dataset_orc",
        "pyarrow._dataset_parquet", "pyarrow._dataset_parquet_encryption", "pyarrow._feather", "pyarrow._flight",
        "pyarrow._gcsfs", "pyarrow._hdfs", "pyarrow._json", "pyarrow._orc", "pyarrow._parquet_encryption",
        "pyarrow._s3fs", "pyarrow._substrait", "pyarrow.acero", "pyarrow.csv", "pyarrow.dataset", "pyarrow.feather",
        "pyarrow.flight", "pyarrow.json", "pyarrow.orc", "pyarrow.parquet.encryption", "pyarrow.substrait",
    ),
    "clusters, which an installation by pip can have, and JAX, which array_api_compat would use": (
        "dask", "dask_jobqueue", "distributed", "jax", "jaxlib", "ml_dtypes",
    ),
    "Python's manual": ("pydoc_data",),
    "for terminals; readline is under the GPL, which this program is not": ("curses", "readline"),
    "would run what somebody has put into the system": ("sitecustomize", "usercustomize"),
}  # fmt: skip # table, one row per line
_UNUSED = tuple(name for names in _WITHOUT.values() for name in names)
_WITH_MODELS = (
    "accelerate",
    "gguf",
    "huggingface_hub",
    "peft",
    "tokenizers",
    "transformers",
    "yaml",
)
"""Packages needed by a model from a folder. Nothing is downloaded by them, but their libraries import OpenSSL."""
_OF_SSL = ("ssl", "_ssl", "_hashlib", "ftplib")
"""OpenSSL, of which pyarrow asks the certificates: ``package_recipes/no_ssl.py`` answers. Hashes are Python's own."""
FAMILIES = (
    "auto", "bloom", "codegen", "cohere", "encoder_decoder", "falcon", "gemma", "gemma2", "gpt2", "gpt_bigcode",
    "gpt_neo", "gpt_neox", "granite", "lfm2", "llama", "mistral", "olmo", "olmo2", "opt", "phi", "phi3", "qwen2",
    "qwen3", "qwen3_5", "smollm3", "stablelm", "starcoder2", "t5",
)  # fmt: skip # table, one row per line
"""Architectures of causal language models that the full package can read, out of some 400 that transformers supports:
those that small models have. A program installed with pip can read all.
"""
_OF_TORCH = (
    "torch",
    "safetensors",
    "sympy",
    "mpmath",
    "networkx",
    "jinja2",
    "markupsafe",
    "fsspec",
    "functorch",
    "torchgen",
    "typing_extensions",
)
_NOT_OF_TORCH = ("setuptools", "tensorboard", "triton", "torch.utils.tensorboard", "torch.utils.benchmark")
UNUSED_OF_PYARROW = ("arrow_substrait", "arrow_dataset", "arrow_acero")
"""Libraries that other libraries of pyarrow refer to on Linux without using anything from them. The references are
removed too (``run_paths.forget``). A trial resolves every function at startup (LD_BIND_NOW), so that a missing one is
noticed.
"""
LANGUAGES = tuple(path.stem for path in sorted((Path(__file__).parents[2] / "resources" / "translations").glob("*.qm")))
"""Languages of the program, whose translations of Qt's own text are included."""
_OTHER_FAMILIES = re.compile(rf"transformers/models/(?!({'|'.join(FAMILIES)}|__init__|__pycache__)(/|\.))[^/]+/")
_OUT = tuple(
    re.compile(pattern)
    for pattern in (
        rf"PySide6/(Qt/)?translations/(?!qtbase_({'|'.join(LANGUAGES)})\.qm$)",
        r"resources/translations/.*(?<!\.qm)$",  # what the translations are compiled from
        r"PySide6/(Qt/)?qml/",
        r"pyqtgraph/(icons|colors|examples)/",
        _OTHER_FAMILIES.pattern,
        r"pyarrow/(lib)?arrow_(python_)?(flight|s3|parquet_encryption)\.",
        rf"pyarrow/lib({'|'.join(UNUSED_OF_PYARROW)})\.so",
        r"pyarrow/libarrow_python\.so($|\.\d+\.)",  # copies; the others need libarrow_python.so.NUMBER
        r"pyarrow/arrow_substrait\.dll$",
        r"pyarrow/(include/|src/|.*\.lib$)",
        r"torch/(test|include|share|utils/benchmark)(/|$)",
        r"torch/bin/(?!torch_shm_manager)",  # which is checked when torch is imported
        r"torch/lib/.*\.(a|lib)$",
        r"torch/lib/lib(jitbackend_test|torchbind_test|aoti_custom_ops|backend_with_compiler)\.",
        r".*\.(pyi|pxd|pyx|c|cpp|h|hpp|cu|cuh|cmake|pxi)$",
        r".*/(tests|testing/data)/.*",
        r"[^/]*\.dist-info/(?!METADATA$)",
        # available on every desktop, whose graphics drivers expect its own, newer version
        r"lib(stdc\+\+|gcc_s|expat|X11|X11-xcb)\.so",
    )
)


Entry = tuple[str, str, str]
_SHARED = (".", "PySide6/Qt/lib", "PySide6", "shiboken6")
"""Folders of shared libraries that only serve other files. On Windows, the last two contain those of Qt."""


def core_source() -> list[tuple[str, str]]:
    """Return the source files for another Python, each with its folder in the package."""
    found: list[tuple[str, str]] = []
    for name in OF_CORE:
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            raise SystemExit(f"The package needs {name}, which is not installed.")
        top = Path(spec.origin).parent
        for path in sorted(top.rglob("*.py")):
            found.append((str(path), str(Path(CORE_SOURCE, name, path.parent.relative_to(top)))))
    return found


def excluded(kind: str) -> list[str]:
    """Return the modules that a package of this kind does not need."""
    return [*_UNUSED, *(_NOT_OF_TORCH if kind == "full" else (*_OF_TORCH, *_WITH_MODELS, *_OF_SSL, "setuptools"))]


def runtime_hooks(kind: str) -> list[str]:
    """Return the files of package_recipes that run before the program in a package of this kind."""
    return ["foreign_programs.py", "no_opengl.py", *(("no_ssl.py",) if kind == "slim" else ())]


def whole(kind: str) -> tuple[str, ...]:
    """Return the packages whose modules are all included in a package of this kind."""
    return tuple(name for name in WHOLE if kind == "full" or not name.endswith(".torch"))


def hidden(kind: str) -> tuple[str, ...]:
    """Return the modules that static analysis does not find."""
    return (*HIDDEN, "transformers", "peft", "gguf") if kind == "full" else HIDDEN


def metadata(kind: str) -> tuple[str, ...]:
    """Return the distributions whose metadata a package of this kind includes."""
    return (*METADATA, *OF_MODELS) if kind == "full" else tuple(name for name in METADATA if name != "gguf")


def kept_modules(toc: Iterable[Entry]) -> list[Entry]:
    """Return the modules that are used: (dotted name, source, kind), as found by PyInstaller."""
    return [entry for entry in toc if not _OTHER_FAMILIES.match(entry[0].replace(".", "/") + "/")]


def kept(toc: Iterable[Entry], needs: Callable[[str], Iterable[str]] | None = None) -> list[Entry]:
    """Return the entries of a table of contents that are used.

    Args:
        toc: (name in the folder, source, kind), as found by PyInstaller.
        needs: returns the file names of the shared libraries that a library refers to; libraries that no kept file
            refers to are dropped as well.
    """
    left = [entry for entry in toc if _used(_path(entry))]
    if needs is not None:
        left = _reached(left, needs)
    there = {_path(entry).as_posix() for entry in left}
    return [entry for entry in left if entry[2] != "SYMLINK" or entry[1].replace("\\", "/") in there]


def _reached(toc: list[Entry], needs: Callable[[str], Iterable[str]]) -> list[Entry]:
    """Return ``toc`` without the shared libraries that nothing in it refers to."""
    real = [entry for entry in toc if entry[2] != "SYMLINK"]
    shared = {_path(entry).name.lower(): entry for entry in real if _shared(entry)}
    waiting = [entry for entry in real if not _shared(entry)]
    found: set[str] = set()
    for entry in waiting:  # grows during iteration
        # in lower case: a Windows library asks for VCRUNTIME140.dll and means vcruntime140.dll
        for name in {one.lower() for one in needs(entry[1])} & shared.keys() - found:
            found.add(name)
            waiting.append(shared[name])
    return [entry for entry in toc if entry[2] == "SYMLINK" or entry in waiting]


def _shared(entry: Entry) -> bool:
    """Return whether an entry is a library that only serves others, neither a module that Python imports nor Python
    itself.

    On Windows, extension modules are in the same folders as libraries, and no library refers to them.
    """
    path = _path(entry)
    is_library = entry[2] == "BINARY" and path.parent.as_posix() in _SHARED
    return is_library and not path.name.lower().startswith(("libpython", "python"))


def note(modules: Iterable[Entry], binaries: Iterable[Entry], target: Path) -> None:
    """Write a list of what is in the package, for looking up the licences: modules, and libraries of the system."""
    tops = {entry[0].split(".")[0] for entry in modules}
    real = [entry for entry in binaries if entry[2] != "SYMLINK"]
    tops |= {_path(entry).parts[0] for entry in real if len(_path(entry).parts) > 1}
    stdlib = str(Path(os.__file__).parent)  # all that is its own where a distribution's Python has the prefix /usr
    own = (sys.prefix, stdlib if sys.base_prefix == "/usr" else sys.base_prefix)
    libraries = [entry[1] for entry in real if sys.platform == "linux" and not entry[1].startswith(own)]
    target.write_text(json.dumps({"modules": sorted(tops), "libraries": sorted(libraries)}), encoding="utf-8")


def _path(entry: Entry) -> PurePosixPath:
    return PurePosixPath(entry[0].replace("\\", "/"))


def _used(path: PurePosixPath) -> bool:
    name = str(path)
    if any(pattern.match(name) for pattern in _OUT):
        return False
    parts = path.parts
    if "plugins" in parts and parts[0] == "PySide6":
        return qt_plugins.is_kept(path)
    return True
