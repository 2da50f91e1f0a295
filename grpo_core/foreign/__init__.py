"""Reading of untrusted files (sources, prompts, sessions, model folders) in a separate process, which can safely
crash.
"""
