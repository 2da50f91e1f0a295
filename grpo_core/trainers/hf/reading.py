"""Reading of a model from an untrusted folder, in the process that reads it and in the one that asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from grpo_core.foreign.readers import Readers
from grpo_core.trainers.hf.folder import ModelFiles, ignored_sentence, known, look, vocabulary

if TYPE_CHECKING:
    from grpo_core.child.answering import Poll


class Model(TypedDict):
    """A model in a folder: its files, the text of each token, and a note on ignored generation settings."""

    files: ModelFiles
    texts: tuple[str, ...]
    ignored: str


def model(path: str, *, poll: Poll) -> Iterator[Model]:
    """Yield facts about a model: its files, the text of each token, and the generation settings that are ignored.

    A prompt is encoded before, so that a tokenizer or chat template without end exceeds the limits of this process
    rather than those of the machine when it trains.
    """
    from grpo_core.trainers.hf.chat import encode_a_prompt

    files = look(Path(path))
    if not files.gguf:
        encode_a_prompt(files.whole)
    yield {"files": files, "texts": vocabulary(files), "ignored": ignored_sentence(files.whole)}


def read_model(readers: Readers, path: Path, *, poll: Callable[[], None] = lambda: None) -> tuple[ModelFiles, str]:
    """Return the model at ``path`` (:func:`grpo_core.trainers.hf.folder.look`), and a note on ignored generation
    settings.

    The text of its tokens is cached, so that they can be displayed.

    Raises:
        GrpoError: it cannot be used; the message says why.
    """
    (found,) = readers.results("model", path, poll=poll)
    files: ModelFiles = found["files"]
    place = known(str(files.path), files.digest)
    place.files, place.texts = files, found["texts"]
    return files, found["ignored"]
