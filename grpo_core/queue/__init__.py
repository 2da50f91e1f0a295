"""Queues of language-model runs: a folder with one run file per run, trained one after the other."""
