"""The results of a race as they arrive: each algorithm's runs, the summary table, and which algorithms coincide."""

from __future__ import annotations

from functools import cached_property

from app.experiments.controller import ExperimentResults
from app.experiments.race.looks import look
from app.experiments.race.plan import RacePlan
from app.plotting.table_model import Column, Marked
from grpo_core.claims.claim import Claim, sentence
from grpo_core.claims.comparison import Sooner, Trained
from grpo_core.experiments.ensemble import Ensemble
from grpo_core.experiments.outcome import details, found, outcome, trained
from grpo_core.experiments.race import Digest, spoken
from grpo_core.text import plural, tr

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
