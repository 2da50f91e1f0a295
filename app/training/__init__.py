"""Training in a separate thread: commands go in through a mailbox, updates come out through a buffer."""
