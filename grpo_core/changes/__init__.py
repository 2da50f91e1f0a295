"""Possible deviations of a trainer from its settings, applied to a recorded update.

A change turns a recorded step into another step, whose numbers are computed by the functions that trained. The search
for causes (``grpo_core/audit``) and their verification (``grpo_core/claims``) apply the same changes.
"""
