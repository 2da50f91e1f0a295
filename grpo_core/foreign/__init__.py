"""Reading of untrusted files (sources, prompts, sessions, model folders) in a separate process that may crash."""
