"""Reading of untrusted files (sources, prompts, sessions, models' folders) in a separate process that may crash."""
