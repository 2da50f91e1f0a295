"""Inspection of a user's model before it is loaded: architecture, size, any reason why it cannot be used, and
its own generation settings, which are ignored.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from grpo_core.config import Settings, folder_settings
from grpo_core.errors import shortened
from grpo_core.parsing import object_in
from grpo_core.regular_file import opened_regular, read_limited
from grpo_core.text import plural, tr
from grpo_core.trainers import token_text
from grpo_core.trainers.hf import adapter_files
from grpo_core.trainers.hf.adapter_files import AdapterFiles, adapter_in
from grpo_core.trainers.hf.refusal import refuse
from grpo_core.trainers.hf.tensors import MAGIC, Shapes, header_of, numbers, shapes_of, weight_files

LARGEST_JSON = 128 << 20
"""Maximum size in bytes of a JSON file in the folder. Large vocabularies take about 35 MB."""
MOST_COUNTED = 100_000
"""Maximum number of heads, experts and so on in a configuration. Layers are limited by the number of tensors."""
LONGEST_KIND = 100
"""Maximum number of characters in an architecture's name."""
BLOCK, BLOCKS = 4096, 256
"""Size in bytes and number of the blocks, spread evenly over a weights file, from which its digest is computed.
Training changes nearly every weight.
"""
_LICENCE = re.compile(r"^license(?:_name)?:\s*['\"]?([^'\"\n]+)", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class ModelFiles:
    """A user's model, as described by its files.

    Attributes:
        path: the folder, or the GGUF file.
        kind: its architecture, such as “llama”.
        context: maximum length in tokens of prompt and completion together; None if the files do not specify it.
        licence: licence named in the model card or header, or empty.
        digest: digest of its configuration, tokenizer and weights, 16 hexadecimal digits.
        size: size of its weights on disk in bytes.
        adapter: the trained adapter in the folder; ``shapes`` and ``parameters`` are then those of its model.
    """

    path: Path
    gguf: bool
    kind: str
    shapes: Shapes
    parameters: int
    context: int | None
    licence: str
    digest: str
    size: int
    adapter: AdapterFiles | None = None

    @property
    def whole(self) -> Path:
        """Folder or file of the full model. For an adapter, the folder or file of its model."""
        return self.path if self.adapter is None else self.adapter.base

    @property
    def settings(self) -> Settings:
        """Default settings of a run from these files. An adapter in them is trained further."""
        settings = folder_settings(str(self.path), self.digest)
        if self.adapter is None:
            return settings
        return settings.replace({"model.adapter_rank": self.adapter.rank, "model.adapter_alpha": self.adapter.alpha})

    @property
    def name(self) -> str:
        return self.path.stem if self.gguf else self.path.name

    @property
    def description(self) -> str:
        facts = {"name": self.name, "kind": self.kind, "parameters": self.parameters}
        facts["licence"] = self.licence or tr("not stated")
        if self.adapter is not None:
            return plural(
                "{name}: an adapter of rank {rank} for {base}, {kind}, {parameters:,} parameter, licence {licence}.",
                "{name}: an adapter of rank {rank} for {base}, {kind}, {parameters:,} parameters, licence {licence}.",
                self.parameters,
            ).format(rank=self.adapter.rank, base=self.whole.name, **facts)
        return plural(
            "{name}: {kind}, {parameters:,} parameter, licence {licence}.",
            "{name}: {kind}, {parameters:,} parameters, licence {licence}.",
            self.parameters,
        ).format(**facts)

    @property
    def reading(self) -> str:
        return tr("Loading it reads {size:,.1f} MB.").format(size=self.size / 1e6)


def look(path: Path) -> ModelFiles:
    """Inspect the model at ``path``, a folder or a GGUF file, without loading its weights.

    Raises:
        SettingsError: the model cannot be used; the message says why, and what to do instead.
    """
    try:
        path = path.expanduser().resolve()
        if path.is_dir():
            return _looked_at_folder(path)
        if not path.exists():
            raise refuse(path, tr("there is no such folder or file"))
        with opened_regular(path) as file:
            magic = file.read(4)
    except (OSError, RuntimeError, ValueError) as error:
        raise refuse(path, tr("it cannot be read ({error})").format(error=error)) from None
    if magic not in (MAGIC, b""):
        raise refuse(path, tr("it is neither a folder nor a GGUF file; choose the folder that contains config.json"))
    return _looked_at_gguf(path)


def vocabulary(files: ModelFiles) -> tuple[str, ...]:
    """Return the text of each token, indexed by token number, (V,)."""
    if not files.gguf:
        return token_text.vocabulary(files.whole)
    metadata, _ = header_of(files.path)
    kind = str(metadata.get("tokenizer.ggml.model"))
    return tuple(token_text.piece(str(text), byte_level=kind == "gpt2") for text in metadata["tokenizer.ggml.tokens"])


@dataclass
class Looked:
    """The cached results of inspecting a model, empty at first.

    Attributes:
        texts: the text of each token, indexed by token number, (V,).
    """

    files: ModelFiles | None = None
    texts: tuple[str, ...] | None = None


@lru_cache(maxsize=4)
def known(folder: str, digest: str) -> Looked:
    """Return the cache entry for the model at ``folder``. A change to its files changes the digest."""
    return Looked()


def texts_of(folder: str, digest: str) -> tuple[str, ...]:
    """Return the text of each token of the model at ``folder``, read once for each digest.

    Raises:
        SettingsError: the folder cannot be used.
    """
    place = known(folder, digest)
    if place.texts is None:
        place.texts = vocabulary(look(Path(folder)))
    return place.texts


def _looked_at_folder(path: Path) -> ModelFiles:
    adapter = adapter_in(path)
    if adapter is None:
        return _whole_model(path)
    base = _whole_model(adapter.base)
    adapter.check(base.shapes)
    own = _digest([path / adapter_files.CONFIG], [path / adapter_files.WEIGHTS])
    digest = hashlib.sha256(f"{base.digest} {own}".encode()).hexdigest()[:16]
    return dataclasses.replace(base, path=path, adapter=adapter, digest=digest)


def _whole_model(path: Path) -> ModelFiles:
    config = _json(path, "config.json")
    tokenizer = _json(
        path, "tokenizer.json", absent=tr("it does not contain tokenizer.json; save its fast tokenizer there")
    )
    for name in ("config.json", "tokenizer_config.json"):
        if "auto_map" in _json(path, name, absent=None):
            raise refuse(path, tr("its {file} asks for its own code, which is never run").format(file=name))
    if config.get("quantization_config"):
        raise refuse(path, tr("its weights are quantized; choose the model in float32, float16 or bfloat16"))
    kind = config.get("model_type")
    if not isinstance(kind, str) or len(kind) > LONGEST_KIND or not isinstance(tokenizer.get("model"), dict):
        raise refuse(
            path, tr("its config.json does not name a model type, or its tokenizer.json does not contain a tokenizer")
        )
    files = weight_files(path)
    shapes = {name: shape for file in files for name, shape in shapes_of(file).items()}
    _check_embedding(path, config, shapes)
    _check_counts(path, config, shapes)
    context = config.get("max_position_embeddings", config.get("n_positions"))
    small = [path / "config.json", path / "tokenizer.json"]
    return ModelFiles(
        path=path,
        gguf=False,
        kind=kind,
        shapes=shapes,
        parameters=numbers(shapes),
        licence=_licence(path, config),
        context=context if isinstance(context, int) else None,
        digest=_digest(small, files),
        size=sum(file.stat().st_size for file in files),
    )


def _looked_at_gguf(path: Path) -> ModelFiles:
    metadata, shapes = header_of(path)
    kind = metadata.get("general.architecture")
    tokens = metadata.get("tokenizer.ggml.tokens")
    if not isinstance(kind, str) or len(kind) > LONGEST_KIND or not isinstance(tokens, list) or not tokens:
        raise refuse(path, tr("it does not name an architecture or does not contain a tokenizer"))
    context = metadata.get(f"{kind}.context_length")
    return ModelFiles(
        path=path,
        gguf=True,
        kind=kind,
        shapes=shapes,
        parameters=numbers(shapes),
        licence=str(metadata.get("general.license", ""))[:60],
        digest=_digest([], [path]),
        size=path.stat().st_size,
        context=context if isinstance(context, int) else None,
    )


def _json(path: Path, name: str, absent: str | None = "") -> dict[str, Any]:
    """Read a JSON object in the folder. ``absent`` says why the file is required; None if it is optional."""
    if not (path / name).exists():
        if absent is None:
            return {}
        raise refuse(path, absent or tr("it does not contain {file}").format(file=name))
    read = object_in(read_limited(path / name, LARGEST_JSON))
    if read is None:
        raise refuse(path, tr("its {file} is empty or not JSON").format(file=name))
    return read


def _check_embedding(path: Path, config: dict[str, Any], shapes: Shapes) -> None:
    wanted = config.get("vocab_size"), config.get("hidden_size", config.get("n_embd"))
    tables = {name: shape for name, shape in shapes.items() if name.endswith(("embed_tokens.weight", "wte.weight"))}
    for name, shape in tables.items():
        if None not in wanted and shape != wanted:
            raise refuse(
                path,
                tr("its tensor {name} has the shape {shape}, but its config.json asks for {wanted}").format(
                    name=shortened(name, 60), shape=shape, wanted=shortened(wanted, 60)
                ),
            )


def _check_counts(path: Path, config: dict[str, Any], shapes: Shapes) -> None:
    """Reject more layers than tensors, or an implausible number of heads, experts and so on, before any is built."""
    for name, value in config.items():
        layers = name in ("num_hidden_layers", "num_layers", "n_layer")
        most = len(shapes) if layers else MOST_COUNTED
        if (layers or name.startswith("num_")) and type(value) in (int, float) and not 0 <= value <= most:
            sentence = plural(
                "its config.json asks for {name} = {value}, but its files contain {count} tensor",
                "its config.json asks for {name} = {value}, but its files contain {count} tensors",
                len(shapes),
            )
            raise refuse(path, sentence.format(name=shortened(name, 40), value=shortened(value, 30), count=len(shapes)))


def _licence(path: Path, config: dict[str, Any]) -> str:
    try:
        card = (read_limited(path / "README.md", 1 << 20) or b"").decode("utf-8", "replace")
    except OSError:
        card = ""
    named = _LICENCE.search(card)
    return named[1].strip()[:60] if named else str(config.get("license", ""))[:60]


def _digest(small: Iterable[Path], weights: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in small:
        digest.update(read_limited(path, LARGEST_JSON) or b"")
    for path in weights:
        size = path.stat().st_size
        digest.update(f"{path.name} {size}".encode())
        with opened_regular(path) as file:
            for block in range(BLOCKS):
                file.seek(max(size - BLOCK, 0) * block // (BLOCKS - 1))
                digest.update(file.read(BLOCK))
    return digest.hexdigest()[:16]


_PLAIN = {
    "do_sample": (True, False),
    "temperature": (1.0,),
    "top_k": (0, 50),
    "top_p": (1.0,),
    "typical_p": (1.0,),
    "repetition_penalty": (1.0,),
    "min_p": (),
    "num_beams": (1,),
    "no_repeat_ngram_size": (0,),
    "bad_words_ids": (),
    "suppress_tokens": (),
    "begin_suppress_tokens": (),
    "forced_bos_token_id": (),
    "forced_eos_token_id": (),
}
"""Generation settings that affect sampling -> values with which they have no effect."""
LARGEST_GENERATION = 1 << 20
"""Maximum size of the file of generation settings in bytes. A larger one is ignored."""


def generation_settings(path: Path) -> dict[str, Any]:
    """Return the generation settings of the model at ``path``, as written in its file. Empty if there are none."""
    try:
        return object_in(read_limited(path / "generation_config.json", LARGEST_GENERATION)) or {}
    except (OSError, ValueError):
        return {}


def ignored(path: Path) -> tuple[str, ...]:
    """Return the generation settings of the model at ``path`` that are ignored, as “name = value”."""
    settings = generation_settings(path)
    return tuple(
        f"{name} = {shortened(str(settings[name]), 40)}"
        for name, plain in _PLAIN.items()
        if settings.get(name) is not None and (settings[name] not in plain or (name == "top_k" and settings[name]))
    )


def ignored_sentence(path: Path) -> str:
    """Return a sentence on the ignored generation settings of the model at ``path``. Empty if there are none."""
    names = ignored(path)
    if not names:
        return ""
    return tr(
        "Ignored, because completions are drawn from the entire distribution at the run's temperature: {names}."
    ).format(names=", ".join(names))
