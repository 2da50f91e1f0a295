"""The part of the window that examines the runs and models of other trainers."""
