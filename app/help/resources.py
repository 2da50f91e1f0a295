"""Paths of the shipped text files, both in the source tree and in a packaged program."""

from __future__ import annotations

from grpo_core.shipped import resource

RESOURCES = resource("")
