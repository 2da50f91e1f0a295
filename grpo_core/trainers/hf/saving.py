"""Saving a trained model in the formats of transformers and peft: an adapter, or the full model with merged weights."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from grpo_core.errors import GrpoError, shortened
from grpo_core.text import tr
from grpo_core.trainers.hf.adapter_files import CONFIG, WEIGHTS
from grpo_core.trainers.hf.folder import ModelFiles, look
from grpo_core.trainers.hf.folder_policy import FolderPolicy
from grpo_core.trainers.hf.loading import libraries, tokenizer_of

GENERATION = "generation_config.json"


def write_adapter(policy: FolderPolicy, folder: Path) -> None:
    """Write the adapter that ``policy`` trains in peft's format: ``adapter_config.json`` and
    ``adapter_model.safetensors``.

    Raises:
        GrpoError: the run trains every weight, not an adapter.
        OSError: the files cannot be written.
    """
    if not hasattr(policy.model, "peft_config"):
        raise GrpoError(tr("Every weight of this model is trained, so there is no adapter; export the entire model."))
    with _as_system_errors(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        policy.model.save_pretrained(folder, save_embedding_layers=False)
    for name in (CONFIG, WEIGHTS):
        if not (folder / name).is_file():
            raise GrpoError(tr("peft did not write {name}.").format(name=name))
    _share(folder)


def write_whole(policy: FolderPolicy, files: ModelFiles, folder: Path) -> None:
    """Write the full model as ``save_pretrained`` does, with configuration and tokenizer. An adapter is merged into the
    weights in single precision, after which ``policy`` can no longer be used.

    Raises:
        OSError: the files cannot be written.
    """
    transformers, _ = libraries()
    model: Any = policy.model.float()
    if hasattr(model, "peft_config"):
        model = model.merge_and_unload()
    if files.gguf:  # its weights are plain numbers now, but transformers would still reject them as quantized
        model.hf_quantizer = None
        if hasattr(model.config, "quantization_config"):
            del model.config.quantization_config
    # the folder's own generation settings are copied unchanged: transformers refuses to write some that it reads
    model.generation_config = transformers.GenerationConfig.from_model_config(model.config)
    with _as_system_errors(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.save_pretrained(folder)
        tokenizer_of(files).save_pretrained(folder)
        if (files.whole / GENERATION).is_file():
            shutil.copyfile(files.whole / GENERATION, folder / GENERATION)
    _share(folder)
    look(folder)  # verify that the result is a readable model with all tensors


def _share(folder: Path) -> None:
    """Give the weights the permissions of the folder's other files, since safetensors lets only the owner read them."""
    like = (folder / CONFIG if (folder / CONFIG).is_file() else folder / "config.json").stat().st_mode
    for path in folder.glob("*.safetensors"):
        path.chmod(stat.S_IMODE(like))


@contextlib.contextmanager
def _as_system_errors() -> Iterator[None]:
    """Convert system errors inside safetensors to ``OSError`` with an error number, as elsewhere."""
    try:
        yield
    except SafetensorError as error:
        number = _NUMBER.search(str(error))
        if number is None:
            raise GrpoError(tr("The weights cannot be written: {error}.").format(error=shortened(error))) from error
        raise OSError(int(number[1]), os.strerror(int(number[1]))) from error


_NUMBER = re.compile(r"os error (\d{1,5})")
