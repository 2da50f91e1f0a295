"""Many runs of the bandit at once: sweeps over settings, and the fair race between algorithms."""
