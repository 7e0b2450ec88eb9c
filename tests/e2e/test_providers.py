"""A provider that misbehaves, over real HTTP: retried, or not measured; never a wrong answer."""

from __future__ import annotations
