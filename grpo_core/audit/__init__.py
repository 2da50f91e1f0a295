"""Whether a recorded run's loss and advantages are those of its settings. If not, where it departs."""

from grpo_core.audit.audit import Audit, StepAudit, audit
from grpo_core.audit.compare import Comparison

__all__ = ["Audit", "Comparison", "StepAudit", "audit"]
