"""``make package``: one folder and one archive that need no Python. ``build.spec`` at the root says what goes in."""
