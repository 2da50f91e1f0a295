"""Loading of a model and its tokenizer with transformers: offline, without code from the folder, without pickle."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from grpo_core.errors import GrpoError, is_out_of_memory, shortened
from grpo_core.text import tr
from grpo_core.trainers.hf.folder import ModelFiles, generation_settings
from grpo_core.trainers.hf.refusal import NO_TRANSFORMERS, refuse

OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
"""Environment variables that keep the libraries from downloading anything."""
KINDS = {"float32": torch.float32, "bfloat16": torch.bfloat16}
"""Name of a precision -> dtype of the weights."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Loaded:
    """A loaded model.

    Attributes:
        model: the model of transformers, in evaluation mode: dropout is off.
        tokenizer: the tokenizer of transformers.
        ends: numbers of all tokens that end a completion.
    """

    model: Any
    tokenizer: Any
    ends: tuple[int, ...]


def libraries() -> tuple[Any, Any]:
    """Import transformers and peft, configured to be offline and quiet.

    Raises:
        GrpoError: they are not installed.
    """
    os.environ.update(OFFLINE)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about future changes of the libraries
            import peft
            import transformers
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name in ("transformers", "peft"):
            raise GrpoError(NO_TRANSFORMERS) from None
        raise GrpoError(
            tr("transformers or peft cannot be used here: {error}.").format(error=shortened(error))
        ) from None
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    logging.getLogger("transformers").setLevel(logging.ERROR)
    return transformers, peft


def load(files: ModelFiles, device: torch.device, precision: str) -> Loaded:
    """Load the model and tokenizer of ``files``, with weights in ``precision`` (“float32”, “bfloat16”).

    Raises:
        SettingsError: transformers cannot load it. Before the weights are read, the model's tensors are compared with
            its configuration.
        GrpoError: transformers is not installed.
    """
    transformers, _ = libraries()
    where, options = _place(files)
    kind = KINDS[precision]
    try:
        with warnings.catch_warnings(), read_once() if files.gguf else without_adapters():
            warnings.simplefilter("ignore")
            tokenizer = tokenizer_of(files)
            if not files.gguf:
                options["config"] = config = _configuration(transformers, files)
                _check_shapes(transformers, files, config)
            model, read = transformers.AutoModelForCausalLM.from_pretrained(
                where, trust_remote_code=False, use_safetensors=True, dtype=kind, output_loading_info=True, **options
            )
    except GrpoError:
        raise
    except ImportError as error:
        raise refuse(
            files.path,
            tr("transformers needs another package for it ({error})").format(
                error=shortened(str(error).strip().splitlines()[0])
            ),
        ) from None
    except Exception as error:  # a folder can make the library raise anything
        if is_out_of_memory(error):
            raise
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise refuse(
            files.path, tr("transformers cannot load it ({reason})").format(reason=shortened(reason))
        ) from None
    if read["missing_keys"]:
        raise refuse(files.path, _absent(min(read["missing_keys"])))
    if getattr(model, "_hf_peft_config_loaded", False):
        raise refuse(files.path, tr("transformers has applied an adapter to it, which was not requested"))
    model.eval().requires_grad_(False)
    return Loaded(model=model.to(device), tokenizer=tokenizer, ends=_ends(files, model, tokenizer))


def tokenizer_of(files: ModelFiles) -> Any:
    transformers, _ = libraries()
    where, options = _place(files)
    return transformers.AutoTokenizer.from_pretrained(where, trust_remote_code=False, **options)


def _place(files: ModelFiles) -> tuple[str, dict[str, Any]]:
    """Return the folder and options with which transformers finds the model of ``files``."""
    options = dict[str, Any](local_files_only=True)
    if files.gguf:
        return str(files.path.parent), {**options, "gguf_file": files.path.name}
    return str(files.whole), options


@contextlib.contextmanager
def without_adapters() -> Iterator[None]:
    """Context manager in which transformers ignores adapters stored with the model that it loads.

    By default, transformers finds and applies an adapter, with every field of its configuration;
    :mod:`grpo_core.trainers.hf.adapter_files` accepts only a few fields and reports the others.
    """
    from transformers import modeling_utils
    from transformers.models.auto import auto_factory

    with (
        _replaced(auto_factory, find_adapter_config_file=lambda *_, **__: None),
        _replaced(modeling_utils, maybe_load_adapters=lambda path, download, **adapter: (None, path, adapter)),
    ):
        yield


@contextlib.contextmanager
def _replaced(module: Any, **functions: Callable[..., Any]) -> Iterator[None]:
    """Context manager in which the functions of a module with these names are others."""
    own = {name: getattr(module, name) for name in functions}
    vars(module).update(functions)
    try:
        yield
    finally:
        vars(module).update(own)


def _configuration(transformers: Any, files: ModelFiles) -> Any:
    """Load the model's configuration, with transformers' default implementations of attention and experts. A
    configuration could name third-party code for them, which would be downloaded and run.
    """
    config = transformers.AutoConfig.from_pretrained(str(files.whole), trust_remote_code=False, local_files_only=True)
    if getattr(config, "is_encoder_decoder", False):
        raise refuse(
            files.path, tr("it is an encoder-decoder model; choose a decoder-only model, which continues a text")
        )
    config._attn_implementation = None
    config._experts_implementation = None
    return config


def _check_shapes(transformers: Any, files: ModelFiles, config: Any) -> None:
    """Reject files whose tensors do not fit the configuration, before any weight is read. Architectures whose tensors
    have other names in files than in memory are checked when they are read.
    """
    from transformers.conversion_mapping import get_checkpoint_conversion_mapping

    with torch.device("meta"):
        empty = transformers.AutoModelForCausalLM.from_config(config, trust_remote_code=False)
    wanted = {name: tuple(tensor.shape) for name, tensor in empty.state_dict().items()}
    prefix = f"{empty.base_model_prefix}."
    for name, shape in files.shapes.items():
        expected = wanted.get(name, wanted.get(prefix + name))
        if expected is not None and expected != shape:
            raise refuse(
                files.path,
                tr("its tensor {name} has the shape {shape}, but its config.json asks for {wanted}").format(
                    name=name, shape=shape, wanted=expected
                ),
            )
    if get_checkpoint_conversion_mapping(config.model_type):
        return
    tied = set(getattr(empty, "_tied_weights_keys", None) or ())
    known = {name for each in files.shapes for name in (each, prefix + each)}
    absent = [name for name, _ in empty.named_parameters() if name not in tied and name not in known]
    if absent:
        raise refuse(files.path, _absent(absent[0]))


def _absent(name: str) -> str:
    return tr("its config.json asks for the tensor {name}, which its files do not contain").format(name=name)


def _ends(files: ModelFiles, model: Any, tokenizer: Any) -> tuple[int, ...]:
    """Return every token that ends a completion, from the folder's files and its tokenizer."""
    written = generation_settings(files.whole).get("eos_token_id")
    named: list[Any] = [written, model.config.eos_token_id, tokenizer.eos_token_id]
    given = [number for each in named if each is not None for number in (each if isinstance(each, list) else [each])]
    ends = {number for number in given if type(number) is int}
    if len(ends) < len(set(map(str, given))):
        raise refuse(files.path, tr("its eos_token_id is not the number of a token"))
    if not ends:
        raise refuse(files.path, tr("it does not name a token that ends a completion (eos_token_id)"))
    return tuple(sorted(ends))


_REPEATED = ("GGUFReader", "get_tensor_name_map")
"""Functions of ``gguf`` that transformers 5.23 calls repeatedly for one file. It reads the header three times, with a
Python loop over every token of the vocabulary, and builds the table of names once per module of the model.
"""


@contextlib.contextmanager
def read_once() -> Iterator[None]:
    """Context manager in which repeated calls of ``gguf`` are cached and no progress bar is written to stderr."""
    try:
        import gguf
        from transformers import modeling_gguf_pytorch_utils as reading
    except ImportError:  # transformers then raises an error with instructions
        yield
        return
    cached = {name: functools.cache(getattr(gguf, name)) for name in _REPEATED}
    quiet = {"tqdm": functools.partial(reading.tqdm, disable=True)} if hasattr(reading, "tqdm") else {}
    with _replaced(gguf, **cached), _replaced(reading, **quiet):
        yield
