"""Audit of a recorded run: whether its loss and advantages follow from its settings, and where they deviate."""

from grpo_core.trainers.audit.audit import Audit, StepAudit, audit
from grpo_core.trainers.audit.compare import Comparison

__all__ = ["Audit", "Comparison", "StepAudit", "audit"]
