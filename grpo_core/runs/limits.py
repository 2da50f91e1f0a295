"""Limits on the size of a run file. A file that declares more is rejected before memory is allocated for it.

Each limit is far above what the program writes, and the writer stops before it reaches one.
"""

from __future__ import annotations

MOST_UPDATES = 100_000_000
"""Maximum number of updates of a run. Reaching it takes a day at over a thousand updates per second."""
MOST_META_ROWS = 100
LONGEST_META = 16_000_000
"""Maximum number of characters of one value of the table ``meta``. The longest value holds a vocabulary and prompts."""
LONGEST_TITLE = 1000
"""Maximum number of characters of a title. The title of a nested branch includes those of its ancestors."""
MOST_CHANGES = 10_000
"""Maximum number of changes to the settings."""
LONGEST_SETTINGS = 1_000_000
"""Maximum number of characters of the settings as JSON. A landscape of a thousand rewards takes twenty thousand."""
LONGEST_LAYOUT = 1_000_000
"""Maximum number of characters of a record's description."""
MOST_ARRAYS = 1000
"""Maximum number of arrays in a record, including measurements."""
MOST_AXES = 8
LONGEST_AXIS = 2**31
MOST_SERIES = 1000
LONGEST_SERIES_NAME = 200
LONGEST_ANSWER = 64_000_000
"""Maximum number of characters of the model's answer to a question, as JSON."""
MOST_STRETCHES = 100
"""Maximum number of stretches of thinned updates. Thinning creates at most three at a time."""
MOST_ANCESTORS = 200
"""Maximum number of ancestors of a branch."""
