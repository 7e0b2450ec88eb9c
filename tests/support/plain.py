"""Values of ours as their files have them."""

from __future__ import annotations

import json
from typing import Any

from retrial.store.json_io import to_json


def plain(value: object) -> Any:
    return json.loads(to_json(value))
