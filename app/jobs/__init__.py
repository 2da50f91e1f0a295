"""Background computations in separate processes, shared if several callers need the same one."""
