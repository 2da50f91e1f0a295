"""Background computations in separate processes, shared where several callers need the same one."""
