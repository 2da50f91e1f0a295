"""Jobs: functions that a child process or a cluster's worker computes, and the packing of their results."""
