"""Sentences on what to watch in a language model's run, and on how the answers to its fixed prompts evolved."""

from __future__ import annotations

from app.panels.evolution.row_painter import RowsPicture
from grpo_core.claims.answered import signs_in
from grpo_core.config import Settings
from grpo_core.errors import shortened
from grpo_core.kl import ESTIMATORS
from grpo_core.record import Step
from grpo_core.text import enumeration, tr

IN_WORDS = {
    "sums": (
        tr("It often only talks: watch it answer every time."),
        tr("The last number of an answer is paid. No prompt below is ever trained on."),
    ),
    "form": (
        tr("Number and form are paid separately: watch which comes first."),
        tr("A wrong number in the right form can pay too. No prompt below is ever trained on."),
    ),
    "questions": (
        tr("Your own questions: watch which answers change."),
        tr("With sixteen questions or more, every eighth is held out and asked here."),
    ),
}
"""What to watch in each task with answers in words, and why."""
LONGEST = 24
"""Maximum length in characters of a quoted prompt, so that the sentence about its answers fits."""
NOTHING = tr("(nothing)")
"""Placeholder for an empty answer."""


def what_to_watch(settings: Settings, step: Step | None = None) -> tuple[str, str]:
    """Return a sentence on what to expect in this task, or what came of it in update ``step``, and its reasons."""
    task = settings.language
    if task.in_words:
        return IN_WORDS[task.problem]
    if task.problem == "own":
        return (
            tr("Your own prompts: watch which answers change."),
            tr("With sixteen prompts or more, every eighth is held out and asked here."),
        )
    if task.has_tool:
        return (
            tr("It guesses: watch it learn to ask the calculator."),
            tr("What the tool answers is part of the completion. No prompt below is ever trained on."),
        )
    if task.problem == "gameable":
        if step is None:
            text = tr("Every “=” pays {bonus:g}: watch how many of them it writes.").format(bonus=task.bonus)
        else:
            pays = tr("Every “=” pays {bonus:g}; {signs:.2f} per answer now.")
            text = pays.format(bonus=task.bonus, signs=signs_in(step))
        why = tr("A right answer pays {right:g}; an “=” pays {bonus:g} whether the answer is right or not.")
        return text, why.format(right=task.answer_weight, bonus=task.bonus)
    if task.difficulty == "hopeless":
        acting = acts_without_answers(settings)
        if not acting:
            return (
                tr("It is asked what it cannot do: while no answer is right, nothing changes."),
                tr("While all rewards of a group are equal, every advantage is 0 and nothing is pushed."),
            )
        text = tr("It is asked what it cannot do: only {what} can change it while no answer is right.")
        why = tr("If all answers are wrong, their equal rewards push nothing; {what} can.")
        return text.format(what=enumeration(acting)), why.format(what=enumeration(acting))
    if settings.model.checkpoint == "shipped":
        return (
            tr("It reads left to right: watch it learn precedence."),
            tr("Its habit gives wrong answers where “*” comes after “+”. No prompt below is ever trained on."),
        )
    return tr("Watch each strip: hatched is wrong, filled is right."), tr("No prompt below is ever trained on.")


def acts_without_answers(settings: Settings) -> tuple[str, ...]:
    """Return the loss terms that can change the weights of a run in which no answer is right."""
    goal, optimizer = settings.objective, settings.optimizer
    k1 = goal.kl in ESTIMATORS and ESTIMATORS[goal.kl].pulls_nowhere  # it pushes every token, even at the reference
    acting = (
        (settings.language.working_weight != 0, tr("the reward of the working")),
        (goal.entropy_bonus != 0, tr("the entropy bonus")),
        (optimizer.weight_decay != 0, tr("the weight decay")),
        (goal.beta != 0 and not goal.kl_in_reward and k1, tr("the noise of k1")),
    )
    return tuple(name for true, name in acting if true and optimizer.learning_rate)


def story(picture: RowsPicture) -> str:
    """Return a sentence on how the answer to one prompt changed: the selected prompt, or the one that changed last."""
    place = _told(picture)
    if place is None:
        if _is_unread(picture):
            return tr("The program is reading when these answers changed.")
        if any(now is not None and now.verdict.right is True for now in picture.now):
            if not all(turn.exact for turn in picture.turns if turn is not None):
                return tr("None of these answers differs from the first in the updates that are kept.")
            return tr("None of these answers has changed so far: those that are right were right from the start.")
        return tr("No answer to these prompts is right yet.")
    prompt, now, turn = picture.evolution.prompts[place], picture.now[place], picture.turns[place]
    assert now is not None and turn is not None and turn.former is not None
    former = turn.former.text
    pattern = {
        (True, True): tr("{prompt} was answered {former}; since update {step:,} it is {answer}, which is right."),
        (False, True): tr("{prompt} was answered {former}; since update {step:,} it is {answer}, which is wrong."),
        (None, True): tr("{prompt} was answered {former}; since update {step:,} it is {answer}."),
        (True, False): tr("{prompt} was answered {former}; by update {step:,} it is {answer}, which is right."),
        (False, False): tr("{prompt} was answered {former}; by update {step:,} it is {answer}, which is wrong."),
        (None, False): tr("{prompt} was answered {former}; by update {step:,} it is {answer}."),
    }[now.verdict.right, turn.exact]
    if picture.evolution.run.origin.settings.model.folder:  # prompts and answers are sentences themselves
        return pattern.format(
            prompt=quoted(prompt), former=_in_quotes(former), step=turn.since, answer=_in_quotes(now.text)
        )
    return pattern.format(prompt=prompt, former=former or NOTHING, step=turn.since, answer=now.text or NOTHING)


def quoted(prompt: str) -> str:
    """Return a prompt in quotation marks and on one line, shortened to :data:`LONGEST` characters."""
    return _in_quotes(shortened(" ".join(prompt.split()), LONGEST))


def _is_unread(picture: RowsPicture) -> bool:
    """Return whether some answer's last change from right to wrong or back is unknown, as updates are still unread."""
    return any(now is not None and turn is None for now, turn in zip(picture.now, picture.turns, strict=True))


def tally(picture: RowsPicture) -> str:
    """Return a sentence on the right answers at the cursor.

    It counts those among the sampled completions, if shown, and among the prompts in the rows, and says how many of
    these changed and in which direction.
    """
    known = [(now.verdict.right, turn) for now, turn in zip(picture.now, picture.turns, strict=True) if now is not None]
    right = [turn for is_right, turn in known if is_right is True]
    counted = {"right": len(right), "count": len(picture.now), "step": picture.cursor}
    sampled = _of_sampled(picture)
    if _is_unread(picture):
        return sampled + _of_rows(picture).format(**counted)
    turned = sum(turn is not None and turn.since > 1 for turn in right)
    lost = sum(is_right is False and turn is not None and turn.since > 1 for is_right, turn in known)
    pattern = (
        tr(
            "{right} of {count} right before update {step:,}: {turned} turned right, {start} were right from the "
            "start, {lost} turned wrong."
        )
        if picture.sampled is None
        else tr(
            "Greedy answers before it: {right} of {count} right, {turned} turned right, {start} right from the start, "
            "{lost} turned wrong."
        )
    )
    return sampled + pattern.format(turned=turned, start=len(right) - turned, lost=lost, **counted)


def tally_in_fewer_words(picture: RowsPicture) -> str:
    right = sum(now is not None and now.verdict.right is True for now in picture.now)
    return _of_sampled(picture) + _of_rows(picture).format(right=right, count=len(picture.now), step=picture.cursor)


def _of_rows(picture: RowsPicture) -> str:
    if picture.sampled is None:
        return tr("{right} of {count} right before update {step:,}.")
    return tr("Greedy answers before it: {right} of {count} right.")


def _of_sampled(picture: RowsPicture) -> str:
    """Return the sentence on the sampled completions and a space, or nothing if they are not shown."""
    share = picture.sampled
    if share is None or share.measured_at != picture.cursor or not share.asked:
        return ""
    sentence = tr("Update {step:,} sampled {right} of {asked} right.")
    return sentence.format(step=picture.cursor, right=share.right, asked=share.asked) + " "


def _told(picture: RowsPicture) -> int | None:
    """Return the prompt that the story is about."""

    def turned(place: int) -> int:
        turn = picture.turns[place]
        return turn.since if turn is not None and turn.former is not None and picture.now[place] is not None else 0

    if turned(picture.selected) > 1:
        return picture.selected
    last = max(range(len(picture.turns)), key=turned, default=None)
    return last if last is not None and turned(last) > 1 else None


def _in_quotes(text: str) -> str:
    return tr("“{text}”").format(text=text) if text else NOTHING
