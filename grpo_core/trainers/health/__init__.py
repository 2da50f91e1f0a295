"""The diagnosis of a recorded run: problems with their evidence, when they began, and advice on what to change."""

from grpo_core.trainers.health.checks import CHECKS
from grpo_core.trainers.health.diagnose import diagnose
from grpo_core.trainers.health.finding import Diagnosis, Evidence, Finding, Healthy, Link, NotLookedAt

__all__ = ["CHECKS", "Diagnosis", "Evidence", "Finding", "Healthy", "Link", "NotLookedAt", "diagnose"]
