"""The path of the package's lesson."""

from pathlib import Path

PATH = Path(__file__).with_name("square-root.toml")
