"""An example of a package for GRPO Lab, with one row of each kind. Each module defines the rows of one kind."""
