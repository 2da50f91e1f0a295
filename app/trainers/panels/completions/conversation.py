"""A completion as readable text under a heading with its reward: passages styled by kind, as a conversation with the
loss mask drawn over it, or a prompt's rollouts as an indented tree in which shared turns appear only once.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from PySide6.QtGui import QTextCharFormat, QTextCursor, QTextOption
from PySide6.QtWidgets import QPlainTextEdit, QSizePolicy, QTextEdit, QWidget

from app.boxes import down
from app.plotting.numbers import shown
from app.theme.labels import Label, RichLabel, plain_tip
from app.theme.tokens import Theme
from app.trainers.panels.completions.rows import preview
from grpo_core.foreign.trajectory import Trajectory, Turn, lines_of, turns_in
from grpo_core.record import Origin, Step
from grpo_core.text import listed, plural, tr
from grpo_core.texts import tokens_text
from grpo_core.trainers.branches import Branch, tree_of

PLAIN, HEADING, SPEAKER, NOTE = "plain", "heading", "speaker", "note"
SEEN, PARTLY, UNSEEN = "seen", "partly", "unseen"
LEGEND = ((SEEN, tr("in the loss")), (PARTLY, tr("partly")), (UNSEEN, tr("not in the loss")))
"""Legend entries: the styles that show whether the loss counts the text, and what they mean."""
STRENGTH = {SEEN: 0.22, PARTLY: 0.1}
"""Opacity of the policy's colour behind text that the loss counts."""
MOST_ROLLOUTS = 400
"""Maximum number of rollouts in the tree. Any further ones are left out."""
INDENT, DEEPEST = "    ", 12
"""Indentation of a turn for each branching before it, and the number of branchings after which it no longer grows."""


@dataclass(frozen=True, kw_only=True)
class Passage:
    """Consecutive lines in one style, without the last line break.

    Attributes:
        text: the lines.
        look: their style.
        joined: whether the passage continues the last line of the previous one instead of starting a new line.
    """

    text: str
    look: str = PLAIN
    joined: bool = False

    @property
    def written(self) -> str:
        """The text, including its separator from the previous passage."""
        return self.text if self.joined else "\n" + self.text


def passages(
    prompt: str | None, completion: str | None, trajectory: Trajectory | None = None, tokens: Sequence[Turn] = ()
) -> tuple[list[Passage], int]:
    """Return a completion under its prompt, and the number of passages before the completion.

    Args:
        prompt, completion: None if they are not recorded as text.
        trajectory: the completion's turns; None if the source has none.
        tokens: the completion as stretches of tokens that the loss counts or does not count; empty if it counts all of
            them or if none are recorded.
    """
    before = [
        Passage(text=tr("Prompt"), look=HEADING),
        *_side(prompt, None if trajectory is None else trajectory.prompt),
    ]
    before.append(Passage(text=""))
    after = [Passage(text=tr("Completion"), look=HEADING)]
    if trajectory is not None and trajectory.shared > len(trajectory.prompt):
        after.append(
            Passage(
                text=plural(
                    "The first {count} turn belongs to an earlier branch, where the loss counts it.",
                    "The first {count} turns belong to an earlier branch, where the loss counts them.",
                    trajectory.shared - len(trajectory.prompt),
                ).format(count=trajectory.shared - len(trajectory.prompt)),
                look=NOTE,
            )
        )
    after += _side(completion, None if trajectory is None else trajectory.turns)
    if tokens:
        after += [Passage(text=""), Passage(text=tr("Tokens, as the loss counts them"), look=HEADING)]
        after += [passage for turn in tokens for passage in _turn(turn)]
    if trajectory is not None:
        after += [Passage(text=line, look=NOTE) for line in _end(trajectory)]
    return before + after, len(before)


def by_mask(step: Step, row: int, origin: Origin) -> list[Turn]:
    """Return the stretches of a completion's tokens that the loss counts or does not count, in order.

    The list is empty if the loss counts all tokens, or if the vocabulary is unknown.
    """
    there, mask = np.flatnonzero(step.there[row]), step.mask[row]
    if not origin.vocabulary or mask[there].all():
        return []
    ends = [0, *(np.flatnonzero(np.diff(mask[there].astype(int))) + 1).tolist(), len(there)]
    return [
        Turn(
            role=tr("tokens {first} to {last}").format(first=a + 1, last=b),
            text=tokens_text(step.tokens[row][there[a:b]], origin),
            tokens=b - a,
            body=b - a,
            in_loss=b - a if mask[there[a]] else 0,
        )
        for a, b in pairwise(ends)
    ]


def format_of(look: str, theme: Theme) -> QTextCharFormat:
    """Return the colours and the font weight of a passage."""
    written = QTextCharFormat()
    if look in STRENGTH:
        behind = theme.faint("policy", STRENGTH[look])
        written.setBackground(behind)
        written.setForeground(theme.on(behind))
    elif look in (SPEAKER, NOTE, UNSEEN):
        written.setForeground(theme.ink("muted"))
    else:
        written.setForeground(theme.colour("text"))
    if look in (SPEAKER, HEADING):
        written.setFontWeight(theme.font("strong").weight())
    return written


def _side(text: str | None, turns: Sequence[Turn] | None) -> list[Passage]:
    turns = turns if turns is not None else turns_in(text)
    if turns:
        return [passage for turn in turns for passage in _turn(turn)]
    return [Passage(text=tr("(not recorded as text)") if text is None else text)]


def _turn(turn: Turn) -> Iterator[Passage]:
    """Yield the speaker with the known facts about the turn, followed by its thoughts, words and calls."""
    who, *facts = _facts(turn)
    yield Passage(text=who, look=SPEAKER)
    if facts:
        yield Passage(text=" · ".join(("", *facts)), look=NOTE, joined=True)
    look = look_of(turn)
    if turn.reasoning:
        yield Passage(text=tr("(thinking) {text}").format(text=turn.reasoning), look=look)
    if turn.text:
        yield Passage(text=turn.text, look=look)
    for call in turn.calls:
        yield Passage(text=f"→ {call.name}({call.arguments})", look=look)


def look_of(turn: Turn) -> str:
    """Return the style of a turn's words by how many of them the loss counts, plain if that is not recorded."""
    if turn.in_loss is None or turn.body is None:
        return PLAIN
    return UNSEEN if not turn.in_loss else SEEN if turn.in_loss >= turn.body else PARTLY


def _facts(turn: Turn) -> Iterator[str]:
    yield tr("{role}: {tool}").format(role=turn.role, tool=turn.tool) if turn.tool else turn.role
    if turn.failed:
        yield tr("looks like an error")
    if turn.tokens is not None and turn.in_loss is not None:
        if turn.in_loss:
            yield plural(
                "{tokens} token, {counted} in the loss", "{tokens} tokens, {counted} in the loss", turn.tokens
            ).format(tokens=turn.tokens, counted=turn.in_loss)
        else:
            yield plural("{tokens} token, not in the loss", "{tokens} tokens, not in the loss", turn.tokens).format(
                tokens=turn.tokens
            )
    if turn.also_trained:
        yield tr("{count} trained with their own weight").format(count=turn.also_trained)
    if turn.seconds is not None:
        yield tr("{seconds:.1f} s").format(seconds=turn.seconds)
    if turn.advantage is not None:
        yield f"A {shown(turn.advantage)}"
    if turn.entropy is not None:
        yield f"H {shown(turn.entropy)}"
    if turn.sampler_gap is not None:
        yield tr("{gap} nats from the sampler").format(gap=shown(turn.sampler_gap))


def _end(trajectory: Trajectory) -> Iterator[str]:
    """Yield lines about the end of a trajectory: the reason, errors, rewards, and the environment's numbers."""
    yield ""
    if trajectory.ended:
        yield tr("End: {why}").format(why=trajectory.why_ended())
    for error in trajectory.errors:
        yield tr("Error: {what}").format(what=error)
    if trajectory.rewards:
        parts = (
            tr("{name} {score} × {weight}").format(name=name, score=shown(score), weight=f"{weight:g}")
            for name, score, weight in trajectory.rewards
        )
        yield tr("Rewards: {parts}").format(parts=listed(parts))
    if trajectory.metrics:
        parts = (f"{name} {shown(value)}" for name, value in trajectory.metrics)
        yield tr("Environment: {parts}").format(parts=listed(parts))


def tree_passages(rollouts: Mapping[int, Trajectory], rewards: Mapping[int, float]) -> list[Passage]:
    """Return the tree of rollouts as passages of text.

    Args:
        rollouts: row in the update -> rollout.
        rewards: row in the update -> reward, NaN if not scored.
    """
    few = dict(list(rollouts.items())[:MOST_ROLLOUTS])
    made = [Passage(text=tr("Rollouts of the prompt, common turns once"), look=HEADING)]
    if len(few) < len(rollouts):
        made.append(Passage(text=tr("Only the first {most}.").format(most=MOST_ROLLOUTS), look=NOTE))
    return [*made, *_branches(tree_of(few), 0, few, rewards)]


def _branches(
    branches: Sequence[Branch], depth: int, rollouts: Mapping[int, Trajectory], rewards: Mapping[int, float]
) -> Iterator[Passage]:
    """Yield the passages of all branches, each with its turns followed by the branches into which it divides."""
    for branch in branches:
        before = INDENT * min(depth, DEEPEST)
        yield Passage(text=before + _who(branch.rows), look=SPEAKER)
        for turn in branch.turns:
            look = look_of(turn)
            for line in lines_of(turn):
                yield Passage(text=f"{before}{INDENT}{preview(line)}", look=look)
        further = {row for way in branch.branches for row in way.rows}
        for row in (row for row in branch.rows if row not in further):
            ended = rollouts[row].why_ended()
            told = tr("{row}: R {reward}").format(row=f"#{row + 1}", reward=shown(rewards[row]))
            yield Passage(text=f"{before}{INDENT}{' · '.join(filter(None, (told, ended)))}", look=NOTE)
        yield from _branches(branch.branches, depth + 1, rollouts, rewards)


def _who(rows: Sequence[int]) -> str:
    if len(rows) == 1:
        return f"#{rows[0] + 1}"
    return plural("{numbers} ({count} rollout)", "{numbers} ({count} rollouts)", len(rows)).format(
        numbers=" ".join(f"#{row + 1}" for row in rows[:12]) + (" …" if len(rows) > 12 else ""), count=len(rows)
    )


class MaskLegend(RichLabel):
    """A legend of the styles for what the loss counts."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName(tr("Legend: {looks}").format(looks=listed(words for _, words in LEGEND)))

    def show_look(self, theme: Theme, scale: float) -> None:
        entries = []
        for look, words in LEGEND:
            written = format_of(look, theme)
            style = f"color: {written.foreground().color().name()};"
            if look in STRENGTH:
                style += f" background-color: {written.background().color().name()};"
            entries.append(f'<span style="{style}">&nbsp; {html.escape(words)} &nbsp;</span>')
        self.setFont(theme.font("small", scale))
        self.setText("&nbsp; ".join(entries))


MOST = 1_000
"""Maximum number of search matches that are highlighted."""


class CompletionText(QWidget):
    """A heading with text below it. The text is shown as plain text; markup in it is never interpreted."""

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._shown: tuple[str, list[Passage]] = ("", [])
        self._wanted = ""
        self.heading = Label(name="muted", wraps=True)
        # the text must not move the splitter
        self.heading.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.legend = MaskLegend()
        self.legend.hide()
        self.text = QPlainTextEdit()
        self.text.setReadOnly(True)
        self.text.setTabChangesFocus(True)
        self.text.setMinimumHeight(1)  # even in a short panel the heading is shown in full
        self.text.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.text.setAccessibleName(title)
        down(self.heading, self.legend, (self.text, 1), on=self, margins=(8, 0, 8, 8), spacing=4)

    def show_text(
        self,
        theme: Theme,
        scale: float,
        heading: str,
        prompt: str | None,
        completion: str | None,
        wanted: str = "",
        *,
        trajectory: Trajectory | None = None,
        tokens: Sequence[Turn] = (),
        tree: Sequence[Passage] = (),
    ) -> None:
        """Show a completion under its prompt, or say that it is not recorded.

        Args:
            prompt, completion: None if they are not recorded as text.
            wanted: the search text. All matches are highlighted, and the first is scrolled into view, preferably in the
                completion rather than in the prompt.
            tree: shown in place of the completion unless it is empty.
            trajectory, tokens: see :func:`~app.trainers.panels.completions.conversation.passages`.
        """
        self.text.setFont(theme.font("body", scale))
        self.heading.setText(heading)
        self.heading.setToolTip(plain_tip(heading))
        self.legend.setVisible(bool(tokens) or (trajectory is not None and trajectory.masked))
        self.legend.show_look(theme, scale)
        parts, count = (list(tree), 0) if tree else passages(prompt, completion, trajectory, tokens)
        before = sum(len(part.written) for part in parts[:count])
        shown = (theme.name, parts)
        moved = (shown, wanted) != (self._shown, self._wanted)
        if shown != self._shown:
            self._shown = shown
            self._write(parts, theme)
            self._begin_at(before)
        found = self.matches(wanted)
        self._mark(found, theme)
        if moved and found:
            places = [match.selectionStart() for match in found]
            self._begin_at(next((place for place in places if place >= before), places[0]))
        self._wanted = wanted

    def _write(self, parts: Sequence[Passage], theme: Theme) -> None:
        self.text.setPlainText("")
        cursor = QTextCursor(self.text.document())
        cursor.beginEditBlock()
        for i, part in enumerate(parts):
            cursor.insertText(part.written if i else part.text, format_of(part.look, theme))
        cursor.endEditBlock()

    def matches(self, wanted: str) -> list[QTextCursor]:
        """Return at most :data:`MOST` matches of ``wanted`` in the text, ignoring case."""
        found: list[QTextCursor] = []
        document = self.text.document()
        match = document.find(wanted) if wanted else QTextCursor()
        while not match.isNull() and len(found) < MOST:
            found.append(match)
            match = document.find(wanted, match)
        return found

    def _mark(self, found: list[QTextCursor], theme: Theme) -> None:
        marks = []
        for match in found:
            mark = QTextEdit.ExtraSelection()
            mark.format.setBackground(theme.faint("reward", 0.35))
            mark.format.setForeground(theme.on(theme.faint("reward", 0.35)))
            mark.cursor = match
            marks.append(mark)
        self.text.setExtraSelections(marks)

    def _begin_at(self, place: int) -> None:
        """Scroll to ``place`` if the text does not fit, since prompts can be long and nearly identical."""
        for position in (len(self.text.toPlainText()), place):
            cursor = self.text.textCursor()
            cursor.setPosition(min(position, self.text.document().characterCount() - 1))
            self.text.setTextCursor(cursor)
