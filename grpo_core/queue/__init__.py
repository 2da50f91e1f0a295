"""Queues of language-model runs: a folder with one file per run, trained one after the other."""
