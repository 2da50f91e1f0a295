"""Queues of language-model runs: one folder, one run file each, trained one after the other."""
