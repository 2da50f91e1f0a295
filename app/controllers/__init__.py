"""What commands do, one subject a file; each controller names the few parts of the program that it uses."""
