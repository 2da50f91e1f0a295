"""The results of a race as they arrive: each algorithm's runs, the summary table, and sentences about them."""

from __future__ import annotations

from functools import cached_property

from app.experiments.controller import ExperimentController, ExperimentResults
from app.experiments.race.looks import look
from app.experiments.race.plan import FAIR, RacePlan
from app.plotting.numbers import shown
from app.plotting.table_model import Column, Marked
from grpo_core.claims.claim import Claim, sentence
from grpo_core.claims.comparison import Sooner, Trained
from grpo_core.claims.numbers import written
from grpo_core.config import described_at
from grpo_core.errors import SettingsError
from grpo_core.experiments.ensemble import Ensemble
from grpo_core.experiments.outcome import details, found, outcome, trained
from grpo_core.experiments.race import Digest, spoken
from grpo_core.text import enumeration, listed, plural, tr

BEHIND = tr("95% interval of how far it is behind, over paired seeds, corrected for several comparisons (Holm)")
COLUMNS = (
    Column("name", tr("Algorithm"), chars=28, kind="line", help=tr("Next to a name: what else differs between them")),
    Column(
        "mean",
        tr("Mean"),
        chars=7,
        help=tr("Expected reward after the last update, mean of the seeds; one that diverged counts as the lowest"),
    ),
    Column("reward", tr("Median"), chars=7, help=tr("Expected reward after the last update, median of the seeds")),
    Column(
        "stuck", tr("Stuck"), chars=5, decimals=2, help=tr("Share of the seeds whose likeliest action is not the best")
    ),
    Column("behind", tr("Behind"), chars=7, help=tr("Mean over the seeds of the leader's reward minus this one's")),
    Column("behind_low", tr("from"), chars=7, help=BEHIND),
    Column("behind_high", tr("to"), chars=7, help=BEHIND),
    Column("diverged", tr("Diverged"), chars=5, decimals=2, help=tr("Share of the seeds whose numbers overflowed")),
    Column("low", "25%", chars=7, help=tr("A quarter of the seeds end with less reward than this")),
    Column("high", "75%", chars=7, help=tr("A quarter of the seeds end with more reward than this")),
    Column("best", tr("Best action"), chars=7, help=tr("Probability of the best action after the last update, median")),
    Column("kl", "KL", chars=6, unit=tr("nats"), help=tr("KL from the start after the last update, median, in nats")),
    Column(
        "wrong",
        tr("Wrong way"),
        chars=5,
        decimals=2,
        help=tr("Share of all steps that pointed away from more reward; near the top, a KL penalty pulls back"),
    ),
    Column("snr", "SNR", chars=5, decimals=2, help=tr("Signal-to-noise ratio of the step at update 1")),
    Column("mu", "μ", chars=3, help=tr("Passes over each batch")),
    Column("group", "G", chars=3, help=tr("Completions per prompt in each batch")),
    Column("updates", tr("Updates"), chars=6),
    Column("samples", tr("Samples"), chars=7, help=tr("Completions drawn by each run")),
)


class RaceResults(ExperimentResults):
    """The results of a race, added one algorithm at a time.

    Attributes:
        digests: name of an algorithm -> summary of its runs, in the order of computation.
    """

    def __init__(self, plan: RacePlan) -> None:
        super().__init__(len(plan.names))
        self.plan = plan
        self.digests: dict[str, Digest] = {}

    @property
    def lanes(self) -> dict[str, Ensemble]:
        return {name: digest.runs for name, digest in self.digests.items()}

    @property
    def running(self) -> str:
        return "" if self.complete else self.plan.names[self.count]

    @property
    def so_far(self) -> str:
        return plural(
            "Incomplete: {count} of {wanted} algorithm.", "Incomplete: {count} of {wanted} algorithms.", self.wanted
        ).format(count=self.count, wanted=self.wanted)

    def take(self, result: Digest) -> None:
        self.digests[result.name] = result
        self.count += 1

    def rows(self) -> list[list[object]]:
        """Return the summary table, one row per algorithm. See :data:`COLUMNS`."""
        beside, behind = self.plan.differing(), self.trained.behind if self.complete else {}
        rows: list[list[object]] = []
        for name, digest in self.digests.items():
            gap = behind.get(spoken(name))
            numbers = (None, None, None) if gap is None else (gap.by, gap.low, gap.high)
            marked = Marked(name, *look(name), beside=beside[name])
            rows.append([marked, *digest.numbers[:3], *numbers, *digest.numbers[3:]])
        return rows

    def ranked(self) -> list[tuple[str, float]]:
        """Return names and mean final rewards, best first. A diverged seed counts as the lowest possible reward."""
        return trained(self.lanes).ranked() if self.digests else []

    @cached_property
    def trained(self) -> Trained:
        """The results of a complete race as raw arrays, by displayed name of the algorithm."""
        return trained({spoken(name): runs for name, runs in self.lanes.items()})

    @cached_property
    def details(self) -> tuple[Claim[Trained], ...]:
        return details(self.trained)

    @cached_property
    def _stated(self) -> str:
        """A line on which algorithm is faster, and one on which ends higher, without a line that cannot be told."""
        faster, higher = sentence(*found(self.trained, Sooner)), sentence(*outcome(self.trained))
        lines = (
            faster and tr("Which is faster? {sentence}").format(sentence=faster),
            higher and tr("Which ends higher? {sentence}").format(sentence=higher),
        )
        return "\n".join(filter(None, lines))

    def coinciding(self) -> list[list[str]]:
        """Return groups of algorithms whose runs are identical up to rounding, seed by seed and update by update."""
        groups: dict[str, list[str]] = {}
        for name, digest in self.digests.items():
            groups.setdefault(digest.repeats or name, []).append(name)
        return [group for group in groups.values() if len(group) > 1]


BANDS = tr("Bands contain the middle half of the seeds.")


def status_text(controller: ExperimentController[RaceResults], wanted: RacePlan, remark: str, *, settling: bool) -> str:
    """Return a message about the most urgent aspect of the state of a race.

    Args:
        wanted: the race that the controls currently define.
        remark: a message about settings of the run that a race cannot use.
        settling: whether a new race is about to start automatically.
    """
    results, coming = controller.results, controller.coming
    if coming is not None:
        return tr("Racing: {running}, {done} of {count}.").format(
            running=spoken(coming.running), done=coming.count + 1, count=len(wanted.names)
        )
    if controller.problem or results is None:
        return controller.problem
    if results.plan != wanted and not settling:
        return of_change(results.plan, wanted)
    climbing = sentence(*results.details) if results.complete else ""
    outcome = (of_same(results), of_rest(results), climbing, FAIR[results.plan.fairness][1], BANDS)
    return " ".join(part for part in (results.note, remark, *outcome) if part)


def of_same(results: RaceResults) -> str:
    """Return sentences about algorithms whose runs are identical seed by seed, or an empty string if there are none."""
    return " ".join(
        tr("{names} coincide: the same runs, seed by seed.").format(names=enumeration([spoken(name) for name in group]))
        for group in results.coinciding()
    )


def of_rest(results: RaceResults) -> str:
    """Return a sentence about what else differs between the algorithms in a race with equal step length.

    The string is empty for other races, and if nothing else differs.
    """
    if results.plan.fairness != "step_length":
        return ""
    patterns = {
        "objective.beta": tr("β still differs: it is {highest:g} for {names}."),
        "learner.mu": tr("μ still differs: it is {highest:g} for {names}."),
    }
    sentences = []
    for path, pattern in patterns.items():
        of_lanes = {spoken(name): runs.settings.get(path) for name, runs in results.lanes.items()}
        highest = max(of_lanes.values(), default=0)
        if len(set(of_lanes.values())) > 1:
            names = [name for name, value in of_lanes.items() if value == highest]
            sentences.append(pattern.format(highest=highest, names=enumeration(names)))
    return " ".join(sentences)


def of_differences(results: RaceResults) -> list[str]:
    """Return lines that say how far each algorithm is behind the leader of a complete race."""
    leader = spoken(results.ranked()[0][0])
    lines = []
    for name, gap in results.trained.behind.items():
        by, low, high = written(*gap.numbers.values())
        pattern = (
            tr("{leader} and {name}: level, {by} [{low}, {high}]")
            if gap.level
            else tr("{leader} leads {name} by {by} [{low}, {high}]")
        )
        lines.append(pattern.format(leader=leader, name=name, by=by, low=low, high=high))
    return lines


def of_change(then: RacePlan, now: RacePlan) -> str:
    """Return a sentence about what the user has changed since the displayed race was started."""
    try:
        paths = list(then.settings.differences(now.settings))
    except SettingsError:
        paths = []
    if not paths:
        return tr("Another race is chosen; press Race.")
    if "task" in paths:
        return tr("Raced with another kind of task; press Race.")
    titles = [tr("“{title}”").format(title=described_at(path).title) for path in paths]
    if len(titles) <= 3:
        return tr("Raced before a change of {settings}; press Race.").format(settings=enumeration(titles))
    return plural(
        "Raced before a change of {settings} and {count} more setting; press Race.",
        "Raced before a change of {settings} and {count} more settings; press Race.",
        len(titles) - 2,
    ).format(settings=listed(titles[:2]), count=len(titles) - 2)


def of_opening(name: str, runs: Ensemble, place: int) -> str:
    """Return a sentence that says which run of a race is opened, and how closely the opened run repeats it."""
    updates = len(runs.measures["reward"]) - 1
    return plural(
        "{name}, seed {seeds}: {updates:,} update repeats what the race computed, bit for bit on the same "
        "kind of processor.",
        "{name}, seed {seeds}: {updates:,} updates repeat what the race computed, bit for bit on the same "
        "kind of processor.",
        updates,
    ).format(name=spoken(name), seeds=runs.seeds[place], updates=updates)


def summary(results: RaceResults) -> str:
    """Return a one-sentence summary of the race for screen readers."""
    plan = results.plan
    best = [f"{name} {shown(reward)}" for name, reward in results.ranked()]
    if not best:
        return tr("No algorithm has finished yet.")
    lost = [name for name, runs in results.lanes.items() if runs.diverged.any()]
    sentences = [
        plural(
            "Race over {seeds} seed and {updates:,} updates; mean of the final reward, the best first: {best}.",
            "Race over {seeds} seeds and {updates:,} updates; mean of the final reward, the best first: {best}.",
            plan.seeds,
        ).format(seeds=plan.seeds, updates=plan.updates, best=listed(best)),
        of_same(results),
        tr("{lost} became non-finite.").format(lost=enumeration(lost)) if lost else "",
        results.note,
    ]
    return " ".join(filter(None, sentences))
