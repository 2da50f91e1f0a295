"""Reading of untrusted files (sources, prompts, sessions, model folders) in a process that can safely crash."""
