"""The part of the core that examines the runs and models of other trainers: formats, audit, diagnosis, model folders."""
