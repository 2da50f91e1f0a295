"""The script for TRL runs real training on differing rewards; its trace holds the rewards and losses computed here.

TRL has a separate environment: ``make .venv-trl/.trl`` in the source folder, or any Python that has TRL, named by the
environment variable ``GRPO_LAB_TRL_PYTHON``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grpo_core import recompute
from grpo_core.lm.rewards import PromptSource, parts, rewards
from grpo_core.traces.recorders import RECORDER, RECORDER_SOURCE
from grpo_core.trainers.hf.trl_script import script
from grpo_core.trainers.importers.trace import Trace
from tests.core.trainers.hf.tiny import small

OWN = Path(__file__).parents[4] / ".venv-trl" / "bin" / "python"
PYTHON = os.environ.get("GRPO_LAB_TRL_PYTHON", str(OWN) if OWN.exists() else "")
STEPS = 3

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not PYTHON, reason="TRL is not installed: make .venv-trl/.trl"),
]


@pytest.mark.parametrize(
    "changes", [{}, {"model__adapter_rank": 0, "objective__beta": 0.1, "objective__reduction": "token"}], ids=str
)
def test_the_script_trains_with_trl_on_rewards_that_differ(
    changes: dict[str, Any], folders: dict[str, Path], tmp_path: Path
) -> None:
    rows = [{"prompt": f"Say a letter, {n} times.", "answer": "[a-m]"} for n in range(6)]
    (tmp_path / "own.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    settings = small(
        folders["llama"],
        task__problem="questions",
        task__file=str(tmp_path / "own.jsonl"),
        task__checker="regex",
        task__form="[A-M]",
        task__form_weight=0.5,
        optimizer__learning_rate=1e-2,
        learner__mu=1,
        **changes,
    )
    (tmp_path / "train.py").write_text(script(settings), encoding="utf-8")
    shutil.copyfile(RECORDER_SOURCE, tmp_path / RECORDER)
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [PYTHON, "train.py", "--steps", str(STEPS)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    run = Trace(tmp_path / "runs" / "trl")
    assert len(run) == STEPS
    source, paid = PromptSource(settings.language, None), []
    for number in range(1, STEPS + 1):
        step, table = run.step(number), run.completions(number)
        assert set(np.bincount(step.group)) == {settings.learner.group_size}
        assert len(step.group) == settings.learner.group_size * settings.language.prompts
        prompt = source.drawn(np.random.default_rng(0))[0]  # all are judged by the same rule
        read = [json.loads(text or "")[0]["content"] for text in table.completions]
        judged = np.array([parts(settings.language, prompt, text, 0) for text in read])
        assert step.rewards == pytest.approx(rewards(settings.language, judged)), "paid as it is paid here"
        logged = {report.step: report.numbers["loss"] for report in run.reports(number) if "loss" in report.numbers}
        terms = [recompute.terms(step, passed) for passed in range(step.passes)]
        size = sum(float(np.abs(each.weight * each.token_loss).sum()) for each in terms)
        assert sum(float(each.loss) for each in terms) == pytest.approx(logged[number], abs=1e-5 * size)
        paid += step.rewards.tolist()
    assert len(set(paid)) > 2, "rewards differ, and are not all 0"
