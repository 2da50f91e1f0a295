"""Session files in the window: what it shows goes into one, and comes out of one."""
