"""Background computations in separate processes, which are shared if several callers need the same computation."""
