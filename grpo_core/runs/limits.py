"""Limits on the size of a run file. A file that says more was not written by GRPO Lab, and nothing is allocated for it.

Each limit is far above what the program writes; the writer stops before it reaches one.
"""

from __future__ import annotations

MOST_UPDATES = 100_000_000
"""Updates of a run; at thousands a second, a day."""
MOST_META_ROWS = 100
LONGEST_META = 16_000_000
"""Characters of one value of the table ``meta``; the longest holds a vocabulary and prompts."""
LONGEST_TITLE = 1000
"""Characters of a title that are shown; a branch of a branch is called after both."""
MOST_CHANGES = 10_000
"""Changes of the settings."""
LONGEST_SETTINGS = 1_000_000
"""Characters of the settings as JSON; a landscape of a thousand rewards has twenty thousand."""
LONGEST_LAYOUT = 1_000_000
"""Characters of the description of a record."""
MOST_ARRAYS = 1000
"""Arrays of a record, numbers that were measured included."""
MOST_AXES = 8
LONGEST_AXIS = 2**31
MOST_SERIES = 1000
LONGEST_SERIES_NAME = 200
LONGEST_ANSWER = 64_000_000
"""Characters of what the model answered to a question, as JSON."""
MOST_STRETCHES = 100
"""Stretches of updates that were thinned; the rule leaves three at a time."""
MOST_ANCESTORS = 200
"""Runs that a branch goes back through."""
