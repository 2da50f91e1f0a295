"""Settings of a language model's task: prompts and rewards, and the model itself."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from grpo_core.config.fields import check, detail, setting, structural, structural_detail
from grpo_core.errors import SettingsError
from grpo_core.text import tr


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Properties that distinguish one problem from the others.

    Attributes:
        in_words: whether its prompts are natural language, which only a model with its own tokenizer can read.
        from_file: whether prompts and answers come from the user's file.
        pays_signs: whether every “=” in a completion is rewarded.
        has_tool: whether the model can call a calculator, which replies within the completion.
    """

    in_words: bool = False
    from_file: bool = False
    pays_signs: bool = False
    has_tool: bool = False


PROBLEMS: dict[str, Problem] = {
    "arithmetic": Problem(),
    "gameable": Problem(pays_signs=True),
    "calculator": Problem(has_tool=True),
    "own": Problem(from_file=True),
    "sums": Problem(in_words=True),
    "form": Problem(in_words=True),
    "questions": Problem(in_words=True, from_file=True),
}
IN_WORDS = tuple(name for name, problem in PROBLEMS.items() if problem.in_words)
"""Problems in natural language, for a model that reads any text."""


@dataclass(frozen=True, kw_only=True)
class Completion:
    """A completion as a reward reads it.

    Attributes:
        question, answer: the prompt and its answer.
        text: the completion, without its end-of-sequence token.
        tokens: number of tokens of the completion.
        well_formed: function that returns whether it is a well-formed worked solution.
        calls: function that returns the number of calls that a tool answered.
        found: function that returns whether a regular expression is found in it.
        marks: function that returns whether it marks an answer as final.
    """

    task: LanguageTask
    question: str
    answer: str
    text: str
    tokens: int
    right: Callable[[], bool]
    well_formed: Callable[[], bool]
    calls: Callable[[], int]
    found: Callable[[str], bool]
    marks: Callable[[], bool]


@dataclass(frozen=True, kw_only=True)
class Reward:
    """A part of the reward. It is declared with the setting of its weight, and nowhere else.

    Attributes:
        name: its name in the record and in explanations.
        symbol: its LaTeX symbol.
        score: function that returns this part of a completion's reward, before weighting.
        scored: whether completions of a problem have this part; by default those of every problem.
        paid: whether such a problem pays for it; otherwise its weight is 0.
        bounded: whether its lowest and highest values are 0 and 1, which any completion can earn if prompts are drawn
            by rule.
    """

    name: str
    title: str
    symbol: str
    score: Callable[[Completion], float]
    scored: Callable[[Problem], bool] = lambda p: True
    paid: Callable[[Problem], bool] = lambda p: True
    bounded: bool = False


def _form(c: Completion) -> bool:
    """Return whether the answer has the right form. It is matched only if it is rewarded or is the problem itself."""
    return bool(c.task.form and (c.task.form_weight or c.task.problem == "form")) and c.found(c.task.form)


_THINKS = re.compile(
    r"\s*(?:<think>)?(?:(?!</?think>).)*</think>\s*<answer>(?:(?!</?answer>).)+</answer>\s*", re.DOTALL
)
FORMATS: dict[str, Callable[[Completion], bool]] = {
    "final": lambda c: c.marks(),
    "think": lambda c: _THINKS.fullmatch(c.text) is not None,
}
"""Formats of a completion by name: an answer marked as final, or reasoning and answer in tags (arXiv:2501.12948)."""


def _words(c: Completion) -> float:
    """Return which share of the task's words is in the completion, in any case."""
    words = [word.strip().lower() for word in c.task.words.split(",") if word.strip()]
    there = [re.search(rf"(?<!\w){re.escape(word)}(?!\w)", c.text.lower()) is not None for word in words]
    return sum(there) / len(there) if there else 0.0


def weight(reward: Reward, default: float, help: str, title: str, **about: Any) -> Any:
    """Return the setting of the weight of a part of the reward, by default from −100 to 100."""
    field = setting(default, help, title, limits=(-100, 100), **about)
    return dataclasses.field(default=default, metadata={**field.metadata, "reward": reward})


@dataclass(frozen=True, kw_only=True)
class LanguageTask:
    """Prompts, their checkable answers, and the parts of the reward."""

    problem: str = structural(
        "arithmetic",
        tr(
            "Arithmetic with visible working; the same with a bonus that can be gamed; sums with a calculator as a "
            "tool; or your own prompts and answers. For a model from a folder: sums in words, an answer in a given "
            "form, or your own questions."
        ),
        tr("Task"),
        choices=tuple(PROBLEMS),
        choices_since=(*((name, "0.2.0") for name in IN_WORDS), ("calculator", "0.3.0")),
    )
    difficulty: str = setting(
        "mixed",
        tr(
            "Which prompts are drawn: those that the model solves nearly always, sometimes, seldom or never, or a "
            "mixture."
        ),
        tr("Difficulty"),
        choices=("mixed", "easy", "sweet_spot", "hard", "hopeless"),
    )
    prompts: int = setting(
        8, tr("Number of prompts in an update."), tr("Prompts"), symbol="P", limits=(1, 256), usual=(1, 32)
    )
    max_tokens: int = structural(
        24,
        tr("Maximum length of a completion, including its end sign; a longer one is cut off and scored as it is."),
        tr("Longest completion"),
        unit=tr("tokens"),
        limits=(1, 2000),
        usual=(8, 48),
    )
    answer_weight: float = weight(
        Reward(name="right_answer", title=tr("right answer"), symbol="x^{A}", score=lambda c: c.right(), bounded=True),
        1.0, tr("Reward of a right final answer."), tr("Right answer pays"), usual=(0, 2),
    )  # fmt: skip # table, one row per reward
    working_weight: float = weight(
        Reward(name="well_formed", title=tr("well-formed working"), symbol="x^{W}", score=lambda c: c.well_formed(),
               scored=lambda p: not (p.in_words or p.has_tool), bounded=True),
        0.0, tr("Reward for well-formed working, right or wrong."),
        tr("Well-formed working pays"), usual=(0, 1),
    )  # fmt: skip # table, one row per reward
    bonus: float = weight(
        Reward(name="equals_signs", title=tr("“=” signs"), symbol="x^{=}", score=lambda c: c.text.count("="),
               scored=lambda p: not (p.in_words or p.has_tool), paid=lambda p: p.pays_signs),
        0.15, tr("Reward of each “=” in the task “gameable”: paid for the look of working, not for being right."),
        tr("Each “=” pays"), usual=(0, 0.5),
    )  # fmt: skip # table, one row per reward
    file: str = structural(
        "",
        tr(
            "Your prompts: a CSV, JSON, JSONL or Parquet file with prompts and answers; columns such as “question”, "
            "“problem” or “messages” are known too."
        ),
        tr("Prompt file"),
    )
    checker: str = structural(
        "exact",
        tr(
            "How your answers are compared: with the whole completion, as its last number, as a regular expression, or "
            "with the final answer that it marks (“Answer:”, “####”, \\boxed{…} or <answer>), without a mark its last "
            "number or the whole."
        ),
        tr("Answers are checked as"),
        choices=("exact", "number", "regex", "final"),
        choices_since=(("final", "0.4.0"),),
    )
    form: str = structural(
        r"^Answer: -?\d+\.?$",
        tr("A regular expression: an answer in words has the right form if the expression is found in it."),
        tr("Form"),
        since="0.2.0",
    )
    form_weight: float = weight(
        Reward(name="form", title=tr("form"), symbol="x^{F}", score=_form, scored=lambda p: p.in_words, bounded=True),
        0.0, tr("Reward of an answer in words that has the right form, whether the answer is right or wrong."),
        tr("The form pays"), usual=(0, 1), since="0.2.0",
    )  # fmt: skip # table, one row per reward
    brevity_weight: float = weight(
        Reward(name="brevity", title=tr("brevity"), symbol="x^{B}", scored=lambda p: p.in_words,
               score=lambda c: 1.0 - min(c.tokens / c.task.max_tokens, 1.0)),
        0.0, tr("Reward of a short answer in words: the share of the longest completion that it leaves unused."),
        tr("Brevity pays"), usual=(0, 1), since="0.2.0",
    )  # fmt: skip # table, one row per reward
    calls: int = setting(
        3,
        tr("Maximum number of calls that the calculator answers; one more ends the completion."),
        tr("Calls at most"),
        limits=(0, 100),
        usual=(1, 5),
        since="0.3.0",
    )
    call_weight: float = weight(
        Reward(name="calls", title=tr("calls"), symbol="x^{C}", score=lambda c: c.calls(), scored=lambda p: p.has_tool),
        0.0, tr("Reward of each call that the calculator answers; a negative one makes calls cost something."),
        tr("Each call pays"), usual=(-0.2, 0.2), since="0.3.0",
    )  # fmt: skip # table, one row per reward
    format: str = setting(
        "final",
        tr(
            "The format that is rewarded: the completion marks its final answer (“Answer:”, “####”, \\boxed{…} or "
            "<answer>), or it reasons in <think> and answers in <answer>."
        ),
        tr("Format"),
        choices=tuple(FORMATS),
        since="0.4.0",
    )
    format_weight: float = weight(
        Reward(name="format", title=tr("format"), symbol="x^{M}", score=lambda c: FORMATS[c.task.format](c),
               scored=lambda p: p.in_words, bounded=True),
        0.0, tr("Reward of a completion in the format, whether its answer is right or wrong."),
        tr("The format pays"), usual=(0, 1), since="0.4.0",
    )  # fmt: skip # table, one row per reward
    words: str = setting("", tr("Words or phrases that are rewarded, separated by commas."), tr("Words"), since="0.4.0")
    words_weight: float = weight(
        Reward(name="words", title=tr("words"), symbol="x^{V}", score=_words, scored=lambda p: p.in_words),
        0.0, tr("Reward of a completion with all of the words; with some of them, that share of it. A negative one "
                "makes them cost something."),
        tr("The words pay"), usual=(-1, 1), since="0.4.0",
    )  # fmt: skip # table, one row per reward
    system: str = structural(
        "",
        tr("The system prompt before every prompt. If empty, that of the prompt file, if it has one."),
        tr("System prompt"),
        since="0.4.0",
    )
    thinking: str = structural(
        "default",
        tr(
            "Switches the thinking mode of the model's chat template on or off, if the template has one; by default "
            "the template decides."
        ),
        tr("Thinking"),
        choices=("default", "on", "off"),
        since="0.4.0",
    )
    mask_tool: bool = setting(
        True,
        tr("Leaves the tokens that the calculator wrote out of the loss: the policy did not choose them."),
        tr("Mask the tool's words"),
        since="0.3.0",
    )
    accuracy_every: int = detail(
        10,
        tr("Number of updates between measurements on prompts that are never trained on."),
        tr("Measure accuracy every"),
        unit=tr("updates"),
        limits=(1, 100_000),
        usual=(1, 50),
    )
    held_out: int = structural_detail(
        128,
        tr("Number of prompts that are never trained on and measure accuracy."),
        tr("Held-out prompts"),
        limits=(1, 10_000),
        usual=(16, 512),
    )

    def __post_init__(self) -> None:
        check(self)
        if self.from_file and not self.file:
            raise SettingsError("file", "", tr("give a CSV, JSON, JSONL or Parquet file with prompts and answers"))

    @property
    def longest(self) -> int:
        """T, the maximum length of a completion in tokens."""
        return self.max_tokens

    @property
    def from_file(self) -> bool:
        return PROBLEMS[self.problem].from_file

    @property
    def in_words(self) -> bool:
        return PROBLEMS[self.problem].in_words

    @property
    def has_tool(self) -> bool:
        return PROBLEMS[self.problem].has_tool

    @property
    def rewards(self) -> dict[str, Reward]:
        """The parts of the reward of a completion, by the name of the setting of their weight."""
        problem = PROBLEMS[self.problem]
        return {name: reward for name, reward in REWARDS.items() if reward.scored(problem)}

    @property
    def part_names(self) -> tuple[str, ...]:
        """Names of the parts of the reward in the record, in the order of :attr:`part_weights`."""
        return tuple(reward.name for reward in self.rewards.values())

    @property
    def part_titles(self) -> tuple[str, ...]:
        return tuple(reward.title for reward in self.rewards.values())

    @property
    def part_weights(self) -> tuple[float, ...]:
        """Reward per unit of each part: 0 if the problem does not pay for it."""
        return tuple(getattr(self, name) if self.pays(name) else 0.0 for name in self.rewards)

    def pays(self, name: str) -> bool:
        """Return whether the weight ``name``, a key of :data:`REWARDS`, is used in this problem."""
        problem = PROBLEMS[self.problem]
        return REWARDS[name].scored(problem) and REWARDS[name].paid(problem)


REWARDS: dict[str, Reward] = {
    field.name: field.metadata["reward"] for field in dataclasses.fields(LanguageTask) if "reward" in field.metadata
}
"""All parts of rewards by the name of the setting of their weight: the right answer first, new ones last."""


@dataclass(frozen=True, kw_only=True)
class Model:
    """The language model: its size, the source of its weights, and its device."""

    checkpoint: str = structural(
        "shipped",
        tr(
            "Weights at the start: “shipped”, “calculator” (which can call the tool), “untrained”, or a file made by "
            "“pretrain”."
        ),
        tr("Checkpoint"),
    )
    folder: str = structural(
        "",
        tr("Your own model: a folder with config.json, safetensors and tokenizer.json, or a GGUF file."),
        tr("Model folder"),
        since="0.2.0",
    )
    digest: str = structural(
        "",
        tr(
            "Identifies the contents of the model's files when the run began; the run continues only from the same "
            "files."
        ),
        tr("Digest of the folder"),
        since="0.2.0",
    )
    adapter_rank: int = structural_detail(
        8,
        tr("Trains a low-rank adapter of this rank on the attention (LoRA, arXiv:2106.09685); 0 trains every weight."),
        tr("Adapter rank"),
        symbol="r",
        limits=(0, 1024),
        usual=(0, 64),
        since="0.2.0",
    )
    adapter_alpha: float = structural_detail(
        16.0,
        tr("The adapter's contribution is multiplied by this number divided by its rank."),
        tr("Adapter α"),
        above=0,
        high=4096,
        usual=(1, 64),
        since="0.2.0",
    )
    rows_at_once: int = detail(
        16,
        tr(
            "Number of completions that a model from a folder learns from at once; fewer need less memory and give "
            "the same sum."
        ),
        tr("Completions at once"),
        limits=(1, 4096),
        usual=(1, 64),
        since="0.2.0",
    )
    checkpointing: bool = detail(
        False,
        tr("Computes activations again in the backward pass instead of keeping them: less memory, more time."),
        tr("Gradient checkpointing"),
        since="0.2.0",
    )
    layers: int = structural_detail(2, tr("Transformer blocks."), tr("Layers"), limits=(1, 48), usual=(1, 8))
    width: int = structural_detail(
        64,
        tr("How many numbers the state of a token has."),
        tr("Width"),
        symbol="d",
        limits=(8, 4096),
        usual=(32, 512),
    )
    heads: int = structural_detail(
        4,
        tr("Number of attention heads in a block; they share the width."),
        tr("Heads"),
        limits=(1, 64),
        usual=(1, 16),
    )
    context: int = structural_detail(
        64,
        tr("Maximum length of a prompt and its completion together."),
        tr("Context", "length"),
        unit=tr("tokens"),
        limits=(8, 4096),
        usual=(32, 256),
    )
    device: str = structural(
        "cpu",
        tr(
            "Where the model is computed. The program's own model uses NumPy on the cpu; other devices and other "
            "models use torch."
        ),
        tr("Device"),
        choices=("cpu", "cuda", "mps"),
        withheld=("mps",),  # untested
    )
    precision: str = structural_detail(
        "float32",
        tr(
            "Number format of the forward pass; bfloat16 needs less memory, but its rounding makes ratios differ from "
            "1. Only for models from folders: on an NVIDIA H200 it made the program's own model 3 to 10 times slower."
        ),
        tr("Precision"),
        choices=("float32", "bfloat16"),
    )
    threads: int = structural_detail(
        1,
        tr("Number of CPU threads; one leaves the other cores to the window and is fastest for the default size."),
        tr("Threads"),
        limits=(1, 256),
        usual=(1, 8),
    )
    watch_reference: bool = detail(
        True,
        tr("Scores every completion under the reference policy even if β is 0, so that the KL can be seen."),
        tr("Watch the reference"),
    )
    snapshot_every: int = detail(
        10,
        tr(
            "Number of updates between snapshots of the weights in the run file; updates in between are replayed from "
            "the last snapshot."
        ),
        tr("Snapshot every"),
        unit=tr("updates"),
        limits=(1, 100_000),
        usual=(1, 100),
    )

    snapshot_folder: str = detail(
        "",
        tr(
            "If every weight is trained: the folder for snapshots, which are safetensors files of three times the "
            "model's size; the last two are kept. If empty, none are made, and the run is learned again when it is "
            "continued."
        ),
        tr("Folder for snapshots"),
        since="0.2.0",
    )

    def __post_init__(self) -> None:
        check(self)
        if self.width % self.heads:
            raise SettingsError(
                "heads",
                self.heads,
                tr("the number of heads must divide the width of {width}").format(width=self.width),
            )
        if self.in_bfloat16 and self.device != "cuda" and not self.folder:
            raise SettingsError("precision", self.precision, SLOW_BFLOAT16)
        if self.in_bfloat16 and self.device == "mps":
            raise SettingsError("precision", self.precision, tr("bfloat16 is not available on MPS; choose float32"))

    @property
    def in_bfloat16(self) -> bool:
        """Whether the forward pass is computed in 16 bits."""
        return _IN_BFLOAT16[self.precision]

    @property
    def keeps_weights(self) -> bool:
        """Whether the weights of earlier updates can be restored, to answer questions about those updates."""
        return not self.folder or self.adapter_rank > 0 or bool(self.snapshot_folder)

    @property
    def longest_text(self) -> int | None:
        """Maximum number of tokens of prompt and completion together. None if the model's own files determine it."""
        return None if self.folder else self.context


_IN_BFLOAT16 = {"float32": False, "bfloat16": True}
SLOW_BFLOAT16 = tr(
    "the program's own model was 3 to 10 times slower in bfloat16 than in float32, on an NVIDIA H200; choose float32"
)
"""Why the program's own model is not trained in bfloat16. Runs of earlier versions that were can still be opened."""
