"""Changes that a trainer may have made to what its settings say, applied to a recorded update.

A change makes another step of a recorded one; its numbers are those that the functions that trained give for that step.
Whoever searches for a cause (``grpo_core/audit``) and whoever checks one (``grpo_core/claims``) apply the same changes.
"""
