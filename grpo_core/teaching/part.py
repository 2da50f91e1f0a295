"""Rows that the part for teaching contributes to the tables of the core (:data:`grpo_core.parts.TABLES`)."""

from __future__ import annotations

from grpo_core.child.answering import Answer


def jobs() -> dict[str, Answer]:
    """Return the experiments of lessons, by name."""
    from grpo_core.teaching.lessons.experiments.courses import chain_courses, length_courses

    return {"lengths": length_courses, "chain": chain_courses}


def plugins() -> dict[str, str]:
    """Return the tables to which packages of others can add rows."""
    return {"lesson": "grpo_core.teaching.lessons:PACKAGED"}
