"""Paths of the shipped texts, in the source tree and in a packaged program."""

from __future__ import annotations

from grpo_core.shipped import resource

RESOURCES = resource("")
