"""The loop that trains a run: it accepts commands and emits finished updates and reports. It does not depend on windows
or threads.
"""
