"""A GGUF file: inspected by its header, and computed like the folder it was made from."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from grpo_core.trainers.hf.folder import look, vocabulary
from grpo_core.trainers.hf.learner import FolderLearner
from grpo_core.trainers.hf.loading import load
from grpo_core.trainers.hf.memory import need
from tests.core.trainers.hf.tiny import small
from tests.core.trainers.hf.tiny_gguf import saved_gguf


@pytest.fixture(scope="module")
def file(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny Llama as a GGUF file."""
    return saved_gguf(folders["llama"], tmp_path_factory.mktemp("gguf") / "tiny.gguf")


def test_a_gguf_file_says_what_its_folder_says(file: Path, folders: dict[str, Path]) -> None:
    ours, same = look(file), look(folders["llama"])
    assert (ours.gguf, ours.kind, ours.licence, ours.context) == (True, "llama", "apache-2.0", 256)
    assert ours.parameters == same.parameters
    assert vocabulary(ours) == vocabulary(same)
    assert need(ours, small(file)).trained == need(same, small(folders["llama"])).trained


if importlib.util.find_spec("gguf") is not None:  # transformers reads the weights of such a file by it

    def test_a_gguf_file_is_computed_like_its_folder(file: Path, folders: dict[str, Path]) -> None:
        cpu, tokens = torch.device("cpu"), torch.arange(5, 25)[None]
        with torch.no_grad():
            ours, same = (
                load(look(path), cpu, "float32").model(input_ids=tokens).logits for path in (file, folders["llama"])
            )
        assert float((ours - same).abs().max()) < 1e-4

    def test_its_header_is_read_once_and_gguf_is_left_as_it_was(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        import gguf

        read, plain = [], gguf.GGUFReader

        def counted(path: str) -> Any:
            read.append(path)
            return plain(path)

        monkeypatch.setattr(gguf, "GGUFReader", counted)
        load(look(file), torch.device("cpu"), "float32")
        assert read == [str(file)]
        assert gguf.GGUFReader is counted

    def test_no_progress_bar_is_written_while_it_is_read(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
        load(look(file), torch.device("cpu"), "float32")
        assert "GGUF" not in capfd.readouterr().err

    def test_a_gguf_file_is_trained_like_its_folder(file: Path, folders: dict[str, Path]) -> None:
        ours, same = (next(FolderLearner(small(path))) for path in (file, folders["llama"]))
        assert np.array_equal(ours.tokens, same.tokens)
        assert np.abs(ours.logp - same.logp).max() < 1e-4
