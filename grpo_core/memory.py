"""Memory needed for training, itemised by model: weights, gradients, optimizer states, activations, keys and values.

Most items follow from the parameter count; the two that depend on a model's shape (activations and the cache of keys
and values) are estimates for a dense transformer and are marked as such. :func:`counted` fills the same ledger from the
arrays of a model that is actually being trained.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from grpo_core.arrays import Array
from grpo_core.config.fields import check, setting
from grpo_core.text import plural, tr

GIB = 2**30

WIDTH_PER_LAYER = 128
"""Ratio of width to depth assumed for dense transformers: 4096 / 32 at seven billion parameters."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """A training setup: the policy and the other models that are in memory with it."""

    parameters: float = setting(
        7e9,
        tr("Parameters of the policy."),
        tr("Parameters"),
        symbol="N",
        limits=(1e3, 1e12),
        usual=(1e8, 7e11),
        logarithmic=True,
    )
    weight_bytes: float = setting(
        2.0,
        tr("Bytes of one weight: 4 in float32, 2 in bfloat16, 1 in int8, half a byte in 4 bits."),
        tr("Bytes per weight"),
        unit=tr("bytes"),
        limits=(0.25, 8),
        usual=(0.5, 4),
    )
    gradient_bytes: float = setting(
        2.0, tr("Bytes of one gradient."), tr("Bytes per gradient"), unit=tr("bytes"), limits=(1, 8), usual=(2, 4)
    )
    optimizer: str = setting(
        "adamw_mixed",
        tr("AdamW keeps two moments, and in mixed precision also float32 weights; plain steps keep nothing."),
        tr("Optimizer"),
        choices=("adamw_mixed", "adamw", "adamw_8bit", "sgd_momentum", "sgd"),
    )
    trained_share: float = setting(
        1.0,
        tr("Share of a trained model's parameters that are trained: 1 for all, about 0.005 for LoRA."),
        tr("Trained share"),
        above=0,
        high=1,
        usual=(0.001, 1),
        logarithmic=True,
    )
    reference: bool = setting(True, tr("A frozen copy of the policy, for the KL."), tr("Reference"))
    reward_model: bool = setting(
        False, tr("A frozen model that scores completions; rewards from a rule do not need one."), tr("Reward model")
    )
    critic: bool = setting(
        False, tr("A trained model that values every token; group baselines do not need one."), tr("Critic")
    )
    helper_share: float = setting(
        1.0,
        tr("Size of the reward model and of the critic, as a share of the policy."),
        tr("Size of the helpers"),
        limits=(0.001, 10),
        usual=(0.1, 1),
        logarithmic=True,
    )
    tokens: int = setting(
        8192,
        tr("Tokens in one forward and backward pass, padding included."),
        tr("Tokens per pass"),
        unit=tr("tokens"),
        limits=(1, 10**8),
        usual=(512, 131072),
        logarithmic=True,
    )
    recompute: bool = setting(
        True, tr("Activations are recomputed layer by layer in the backward pass."), tr("Recompute activations")
    )
    generated: int = setting(
        64,
        tr("Completions generated at the same time."),
        tr("Completions at once"),
        symbol="G",
        limits=(0, 10**6),
        usual=(1, 512),
        logarithmic=True,
    )
    length: int = setting(
        1024,
        tr("Tokens of a completion together with its prompt."),
        tr("Length"),
        symbol="L",
        unit=tr("tokens"),
        limits=(1, 10**7),
        usual=(128, 32768),
        logarithmic=True,
    )

    def __post_init__(self) -> None:
        check(self)


STATE_BYTES = {"adamw_mixed": 12.0, "adamw": 8.0, "adamw_8bit": 2.0, "sgd_momentum": 4.0, "sgd": 0.0}
"""Bytes of optimizer state per trained parameter: mixed AdamW keeps a float32 weight and two float32 moments (ZeRO,
arXiv:1910.02054 section 3.1); 8-bit: arXiv:2110.02861."""


WORDS = {
    "policy": tr("policy"),
    "critic": tr("critic"),
    "reference": tr("reference"),
    "reward model": tr("reward model"),
    "weights": tr("weights"),
    "gradients": tr("gradients"),
    "optimizer states": tr("optimizer states"),
    "activations": tr("activations"),
    "keys and values": tr("keys and values"),
    "sampling": tr("sampling"),
    "policy's update": tr("policy's update"),
}
"""Translated names of models, of parts of memory, and of kinds of work."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """One entry of the ledger.

    Attributes:
        model: policy, reference, reward model or critic.
        part: weights, gradients, optimizer states, activations, or keys and values.
        formula: the formula of the size, in words.
        estimate: whether it is based on an assumed shape rather than on the settings alone.
    """

    model: str
    part: str
    bytes: float
    formula: str
    estimate: bool = False

    @property
    def title(self) -> str:
        return f"{WORDS.get(self.model, self.model)}, {WORDS.get(self.part, self.part)}"


def ledger(training: Training) -> list[Block]:
    """Return every block of memory, in bytes. Disabled features have no block."""
    helpers = training.parameters * training.helper_share
    blocks = _trained("policy", training.parameters, training)
    if training.critic:
        blocks += _trained("critic", helpers, training)
    if training.reference:
        blocks.append(_weights("reference", training.parameters, training))
    if training.reward_model:
        blocks.append(_weights("reward model", helpers, training))
    return [*blocks, _cache(training)] if training.generated else blocks


def total(blocks: list[Block]) -> float:
    """Return the total size of ``blocks`` in bytes."""
    return sum(block.bytes for block in blocks)


def shape(parameters: float) -> tuple[float, float]:
    """Return the width h and depth of a dense transformer: N = 12 depth h² (arXiv:2001.08361 section 2.1), h = 128
    depth.
    """
    width = float((parameters * WIDTH_PER_LAYER / 12) ** (1 / 3))
    return width, width / WIDTH_PER_LAYER


def compute(training: Training) -> dict[str, float]:
    """Return the floating-point operations for one prompt's group, from sampling to the gradient, by kind of work.

    There are two per parameter and token in the forward pass and four in the backward pass (arXiv:2001.08361 section
    2.1); attention over long contexts is left out.
    """
    tokens = float(max(training.generated, 1) * training.length)
    own, helpers = training.parameters, training.parameters * training.helper_share
    work = {"sampling": 2 * own * tokens, "policy's update": 6 * own * tokens}
    if training.reference:
        work["reference"] = 2 * own * tokens
    if training.reward_model:
        work["reward model"] = 2 * helpers * tokens
    if training.critic:
        work["critic"] = 2 * helpers * tokens + 6 * helpers * tokens
    return work


def counted(
    weights: Sequence[Array], gradients: Sequence[Array], states: Sequence[Array], reference: Sequence[Array]
) -> list[Block]:
    """Return the blocks of the arrays of a model in training, of any library: the policy's weights, their gradients and
    the optimizer's states, and the reference's weights.
    """
    parts = {
        ("policy", "weights"): weights,
        ("policy", "gradients"): gradients,
        ("policy", "optimizer states"): states,
        ("reference", "weights"): reference,
    }
    return [
        Block(
            model=model,
            part=part,
            bytes=float(sum(x.nbytes for x in arrays)),
            formula=plural(
                "{numbers:,} numbers of {kinds} in {count:,} tensor",
                "{numbers:,} numbers of {kinds} in {count:,} tensors",
                len(arrays),
            ).format(
                numbers=sum(math.prod(x.shape) for x in arrays),
                kinds=", ".join(sorted({str(x.dtype).removeprefix("torch.") for x in arrays})),
                count=len(arrays),
            ),
        )
        for (model, part), arrays in parts.items()
        if arrays
    ]


def _weights(model: str, parameters: float, training: Training) -> Block:
    return Block(
        model=model,
        part="weights",
        bytes=parameters * training.weight_bytes,
        formula=tr("{parameters} parameters × {weight_bytes:g} bytes").format(
            parameters=_count(parameters), weight_bytes=training.weight_bytes
        ),
    )


def _trained(model: str, parameters: float, training: Training) -> list[Block]:
    moved, states = parameters * training.trained_share, STATE_BYTES[training.optimizer]
    blocks = [
        _weights(model, parameters, training),
        Block(
            model=model,
            part="gradients",
            bytes=moved * training.gradient_bytes,
            formula=tr("{moved} trained × {gradient_bytes:g} bytes").format(
                moved=_count(moved), gradient_bytes=training.gradient_bytes
            ),
        ),
        Block(
            model=model,
            part="optimizer states",
            bytes=moved * states,
            formula=tr("{moved} trained × {states:g} bytes").format(moved=_count(moved), states=states),
        ),
        _activations(model, parameters, training),
    ]
    return [block for block in blocks if block.bytes]


def _activations(model: str, parameters: float, training: Training) -> Block:
    """Estimate the size of the activations from equation 1 and section 5 of arXiv:2205.05198, without attention maps,
    which fused attention never stores.
    """
    width, depth = shape(parameters)
    each = 2.0 if training.recompute else 34.0
    what = tr("recomputed: only each layer's input") if training.recompute else tr("all of a layer's")
    return Block(
        model=model,
        part="activations",
        bytes=each * width * depth * training.tokens,
        estimate=True,
        formula=tr("{tokens:,} tokens × {depth:.0f} layers × width {width:,.0f} × {each:g} bytes ({what})").format(
            tokens=training.tokens, depth=depth, width=width, each=each, what=what
        ),
    )


def _cache(training: Training) -> Block:
    width, depth = shape(training.parameters)
    return Block(
        model="policy",
        part="keys and values",
        estimate=True,
        bytes=2 * width * depth * training.weight_bytes * training.generated * training.length,
        formula=tr(
            "{generated:,} completions × {length:,} tokens × {depth:.0f} layers × 2 × "
            "width {width:,.0f} × {weight_bytes:g} bytes"
        ).format(
            generated=training.generated,
            length=training.length,
            depth=depth,
            width=width,
            weight_bytes=training.weight_bytes,
        ),
    )


def _count(number: float) -> str:
    for size, letter in ((1e9, "B"), (1e6, "M"), (1e3, "K")):
        if number >= size:
            return f"{number / size:.4g}{letter}"
    return f"{number:.4g}"
