"""Jobs, which are functions computed in a child process or by a cluster's workers, and the packing of their results."""
