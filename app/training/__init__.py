"""Training in a thread of its own: commands go in by a mailbox, updates come out by a buffer."""
