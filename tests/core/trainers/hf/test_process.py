"""A model from a folder in a run's process."""

from __future__ import annotations

from pathlib import Path

from grpo_core.trainers.hf.folder import look
from tests.core.host.test_process import said_of_an_update

SMALL = {"task.prompts": 2, "learner.group_size": 2, "task.max_tokens": 3, "model.threads": 1}


def test_the_process_says_when_it_cannot_be_asked_as_a_model_is_read(folders: dict[str, Path]) -> None:
    found = said_of_an_update(look(folders["llama"]).settings.replace(SMALL))
    kinds = [(message["is"], message.get("model")) for message in found if message["is"] in ("loading", "loaded")]
    assert kinds == [("loading", False), ("loaded", None), ("loading", True), ("loaded", None)]
