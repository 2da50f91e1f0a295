"""Rows that the part for teaching contributes to the tables of the core (:data:`grpo_core.parts.TABLES`)."""

from __future__ import annotations

from grpo_core.child.answering import Answer


def jobs() -> dict[str, Answer]:
    """Return the experiments of lessons, by name."""
    from grpo_core.teaching.lessons.experiments import courses, group_sizes, stale_samples
    from grpo_core.teaching.lessons.experiments.checkup import checkup
    from grpo_core.teaching.lessons.experiments.family import compared

    return {
        "family": compared,
        "checkup": checkup,
        "group_sizes": group_sizes.tried,
        "stale_samples": stale_samples.tried,
        "lengths": courses.length_courses,
        "chain": courses.chain_courses,
    }


def plugins() -> dict[str, str]:
    """Return the tables to which packages of others can add rows."""
    return {"lesson": "grpo_core.teaching.lessons:PACKAGED"}


def packed() -> dict[str, type]:
    """Return the results of these experiments, by their names in the format."""
    from grpo_core.teaching.lessons.experiments.courses import ChainProgress, Lengths
    from grpo_core.teaching.lessons.experiments.family import Compared

    return {"chain course": ChainProgress, "compared": Compared, "lengths": Lengths}
