"""Answers to questions about an update of a model from a folder, computed with the loaded model itself."""

from __future__ import annotations

import numpy as np
import torch

from grpo_core.lm import rewards
from grpo_core.lm.answers import asked
from grpo_core.questions import Answer, Question
from grpo_core.record import Origin, Step
from grpo_core.texts import question_text
from grpo_core.trainers.hf.folder_policy import FolderPolicy
from grpo_core.trainers.hf.measuring import LIKELIEST
from grpo_core.trainers.hf.scoring import distributions


def scored(policy: FolderPolicy, origin: Origin, question: Question, step: Step) -> Answer:
    """Score a completion under a policy in the state before ``step``, and under its reference.

    Raises:
        GrpoError: the completion is empty or too long, or the prompt is unknown.
    """
    settings = step.settings
    prompt_tokens, tokens = asked(question, step, policy.completion)
    source = rewards.PromptSource(settings.language, None)
    prompt = source.prompt(question_text(step, question.group, origin))
    parts = np.array(rewards.parts(settings.language, prompt, question.completion, len(tokens)))
    batch = policy.batch(prompt_tokens, tokens[None], np.ones((1, len(tokens)), dtype=bool))
    with torch.no_grad():
        dist = distributions(policy.model, batch, slice(0, 1), settings.learner.temperature, policy.ways)
    ref_logp = np.full(len(tokens), np.nan, dtype=np.float32)  # a second model is not loaded just for this
    if policy.reference_at_hand or settings.objective.beta:
        reference = policy.score_reference(batch, settings.learner.temperature, lambda done, total: None)
        ref_logp = reference.logp[0].cpu().numpy()
    top = dist.logp[dist.context[0]].topk(min(LIKELIEST, dist.logp.shape[-1]), dim=-1)  # (T, k)
    drawn = torch.from_numpy(tokens.astype(np.int64)[None]).to(dist.logp.device)
    return Answer(
        tokens=tokens,
        logp=dist.of(drawn)[0].cpu().numpy(),
        ref_logp=ref_logp,
        dist_logp=np.zeros((len(tokens), 0)),
        top_tokens=top.indices.cpu().numpy(),
        top_logp=top.values.cpu().numpy(),
        reward=float(rewards.rewards(settings.language, parts[None])[0]),
        parts=parts,
    )
