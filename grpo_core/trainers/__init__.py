"""The part of the core for runs and models of other trainers: formats, audit, diagnosis, models from folders."""
