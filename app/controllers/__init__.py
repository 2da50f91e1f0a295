"""Actions of commands, one subject a file. Each controller names the few parts of the program that it uses."""
