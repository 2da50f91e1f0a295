"""The part of the core for teaching: lessons, their experiments, and homework."""
