"""Possible deviations of a trainer from its settings, applied to a recorded update.

A change turns a recorded step into another step, with numbers computed by the training functions. The search for causes
(``grpo_core/trainers/audit``) and their verification (``grpo_core/claims``) apply the same changes.
"""
