"""Controllers that open runs and models of other trainers."""
