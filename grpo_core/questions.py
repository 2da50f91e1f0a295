"""Questions that only the model can answer, asked between two updates. The answers are stored in the run."""

from __future__ import annotations

import base64
import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from grpo_core import recompute
from grpo_core.advantages import advantages
from grpo_core.baselines import BASELINES
from grpo_core.config import Settings, settings_from_json
from grpo_core.errors import GrpoError, NonFiniteError
from grpo_core.record import ARRAYS, Step
from grpo_core.text import tr
from grpo_core.update_time import RunQuestion, UpdateTime, UpdateTimeQuestion


@dataclass(frozen=True, kw_only=True)
class Question:
    """A request to a language model for the log-probabilities and the reward of a typed completion.

    Attributes:
        step: the update whose group the completion joins; the policy that sampled that group scores it.
        group: the prompt, counted from 0.
        completion: the text, without an end-of-sequence token.
    """

    step: int
    group: int
    completion: str

    def to_json(self) -> str:
        """Return the question as one line of JSON. The inverse of :func:`question_from_json`."""
        return json.dumps(dataclasses.asdict(self), sort_keys=True)


@dataclass(frozen=True, kw_only=True, eq=False)
class Answer:
    """A scored completion, the answer to a :class:`Question`.

    Attributes:
        tokens: (T,) including the end-of-sequence token.
        logp, ref_logp: (T,) under the policy that sampled the group, and under the reference.
        dist_logp: (T, V) the full distribution at each token's position; (T, 0) for a large vocabulary.
        top_tokens, top_logp: (T, k) the likeliest tokens at each position and their log-probabilities, in that order,
            if the distribution is not kept; only for display.
        parts: (K,) parts of the reward, before weighting.
    """

    tokens: np.ndarray
    logp: np.ndarray
    ref_logp: np.ndarray
    dist_logp: np.ndarray
    reward: float
    parts: np.ndarray
    top_tokens: np.ndarray | None = None
    top_logp: np.ndarray | None = None

    def likeliest(self, place: int) -> tuple[int, float]:
        """Return the most likely token at position ``place``, and its log-probability."""
        if self.top_tokens is not None and self.top_logp is not None:
            return int(self.top_tokens[place, 0]), float(self.top_logp[place, 0])
        best = int(self.dist_logp[place].argmax())
        return best, float(self.dist_logp[place, best])

    def to_json(self) -> str:
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return json.dumps({name: x.tolist() if isinstance(x, np.ndarray) else x for name, x in values.items()})

    @classmethod
    def from_json(cls, text: str) -> Answer:
        """Restore an answer from the line returned by :meth:`to_json`.

        Raises:
            ValueError, TypeError: the text is not such a line.
        """
        stored: dict[str, Any] = json.loads(text)
        stored.pop("words", None)  # files of earlier versions store "words", which is now derived from the completion
        arrays: dict[str, Any] = {name: np.array(x) if isinstance(x, list) else x for name, x in stored.items()}
        per_token: list[Any] = [arrays.get(name) for name in ("tokens", "logp", "ref_logp", "dist_logp")]
        if not all(isinstance(x, np.ndarray) and x.dtype.kind in "if" for x in (*per_token, arrays.get("parts"))):
            raise ValueError("what should be numbers are not numbers")
        top: list[Any] = [arrays[name] for name in ("top_tokens", "top_logp") if arrays.get(name) is not None]
        if not all(isinstance(x, np.ndarray) and x.dtype.kind in "if" and x.ndim == 2 and x.size for x in top):
            raise ValueError("the likeliest tokens are not a table of numbers")
        if len({len(x) for x in [*per_token, *top]}) > 1 or any(x.ndim != 1 for x in per_token[:3]) or len(top) == 1:
            raise ValueError("its arrays do not fit together")
        reward = arrays.get("reward")
        if isinstance(reward, bool) or not isinstance(reward, (int, float)):
            raise ValueError("the reward is not a number")
        return cls(**arrays)


@dataclass(frozen=True, kw_only=True)
class Replay:
    """A request for an update as it would have been under different settings.

    Attributes:
        step: the update; its completions and rewards are reused.
        settings: settings of the counterfactual update; structural ones must equal the run's.
    """

    step: int
    settings: Settings

    def to_json(self) -> str:
        return json.dumps({"step": self.step, "settings": self.settings.to_json()}, sort_keys=True)


@dataclass(frozen=True, kw_only=True, eq=False)
class Replayed:
    """An update under different settings, computed on a copy of the model.

    Attributes:
        arrays: the fields of :class:`~grpo_core.record.Step` that changed, by name.
        measurements: name -> number that only the model can produce.
    """

    arrays: dict[str, np.ndarray]
    measurements: dict[str, float] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return the answer as one line of JSON, which :meth:`from_json` restores bit for bit."""
        arrays = {
            name: (x.dtype.str, x.shape, base64.b64encode(np.ascontiguousarray(x).tobytes()).decode())
            for name, x in self.arrays.items()
        }
        return json.dumps({"arrays": arrays, "measurements": self.measurements})

    @classmethod
    def from_json(cls, text: str) -> Replayed:
        """Restore an answer from the line returned by :meth:`to_json`.

        Raises:
            ValueError: the text is not such a line.
        """
        stored = json.loads(text)
        if not {*stored["arrays"]} <= {*ARRAYS}:
            raise ValueError("this is not a replayed update")
        arrays = {
            name: np.frombuffer(base64.b64decode(data), dtype).reshape(shape)
            for name, (dtype, shape, data) in stored["arrays"].items()
        }
        return cls(arrays=arrays, measurements=stored["measurements"])


class FirstAnswers(RunQuestion):
    """A request for the model's answers to the fixed prompts before any training."""

    KIND = "first_answers"


@dataclass(frozen=True, kw_only=True)
class FixedAnswers:
    """A language model's most likely answers to the fixed prompts that are evaluated throughout a run.

    Attributes:
        tokens: one row per prompt, including the end-of-sequence token if the answer ended.
    """

    tokens: tuple[tuple[int, ...], ...]

    def to_json(self) -> str:
        return json.dumps({"tokens": self.tokens})

    @classmethod
    def from_json(cls, text: str) -> FixedAnswers:
        """Restore answers from the line returned by :meth:`to_json`.

        Raises:
            ValueError: the text is not such a line.
        """
        rows = json.loads(text)["tokens"]
        if not all(isinstance(row, list) and all(type(token) is int for token in row) for row in rows):
            raise ValueError("what should be tokens are not tokens")
        return cls(tokens=tuple(tuple(row) for row in rows))


def not_finite(error: NonFiniteError) -> GrpoError:
    """Return the error for an update that would have diverged under other settings. The run itself goes on."""
    return GrpoError(
        tr("Under these settings {what} of update {step} would not be a finite number.").format(
            what=error.what, step=error.step
        )
    )


AnyQuestion: TypeAlias = Question | Replay | FirstAnswers | UpdateTimeQuestion
AnyAnswer: TypeAlias = Answer | Replayed | FixedAnswers | UpdateTime


def question_from_json(text: str) -> AnyQuestion:
    """Restore a question of any kind from its line of JSON."""
    stored = json.loads(text)
    for kind in (FirstAnswers, UpdateTimeQuestion):
        if kind.KIND in stored:
            return kind(run=stored["run"], step=stored["step"])
    if "settings" in stored:
        return Replay(step=stored["step"], settings=settings_from_json(stored["settings"]))
    return Question(**stored)


def answer_from_json(question: AnyQuestion, text: str) -> AnyAnswer:
    if isinstance(question, FirstAnswers):
        return FixedAnswers.from_json(text)
    if isinstance(question, UpdateTimeQuestion):
        return UpdateTime.from_json(text)
    return Replayed.from_json(text) if isinstance(question, Replay) else Answer.from_json(text)


def placed(step: Step, group: int, answer: Answer, counted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rewards and advantages (G + 1,) of a group after adding the completion of ``answer`` as its last
    member.

    With the KL in the reward, the new completion's divergence is subtracted like those of the others. It is summed over
    the tokens that the loss counts: ``counted`` (T,) is True for these.
    """
    objective = step.settings.objective
    rewards = recompute.grouped(step, step.rewards)  # (P, G)
    rewards = np.concatenate([rewards, np.full((len(rewards), 1), np.nan)], axis=-1)
    rewards[group, -1] = answer.reward
    k1 = recompute.summed_log_ratio(step)
    if k1 is not None:
        each = recompute.grouped(step, k1)
        k1 = np.concatenate([each, np.zeros((len(each), 1))], axis=-1)
        k1[group, -1] = float((answer.logp - answer.ref_logp)[counted].sum())
    if BASELINES[objective.baseline].from_critic:
        objective = objective.replace(baseline="group_mean")
    return rewards[group], advantages(objective, rewards, kl=k1)[group]
