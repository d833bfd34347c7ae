"""A short plan, and the repository that it is run in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
CASE = "groups={groups};fds=2;warmup_ms=1;window_ms=4"


@pytest.fixture
def repository() -> Path:
    return REPOSITORY


@pytest.fixture
def plan() -> dict[str, Any]:
    """Sixteen cells of a few ms each."""
    return {
        "machines": ["uma-8", "x86-12"],
        "policies": ["baseline", "short-task"],
        "runs": 2,
        "workload": [{"name": "hackbench", "cases": [CASE.format(groups=n) for n in (1, 2)]}],
    }
