"""A search tells what is better than the baseline with seeds that it has not seen, and else nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import placewise

SHORT = "clients=16;warmup_ms=1;window_ms=10"


def tuned(results: Path, **what: Any) -> placewise.Tuned:
    how = {"machine": "zen3-2s-nps1", "case": SHORT, "trials": 8, "runs": 3, **what}
    return placewise.tune("tbench", results=results, **how)


def test_what_changes_nothing_beats_nothing(tmp_path: Path) -> None:
    found = tuned(tmp_path, objectives=["throughput"], policies=["hint:none"])
    assert not found.beats_baseline
    assert str(found).endswith("beats the baseline by more than noise")


def test_the_front_has_what_is_better(tmp_path: Path) -> None:
    objectives = ["throughput", "-migrations_wakeup"]
    what = {"objectives": objectives, "policies": ["short-task"], "hints": ["wake_hold"], "runs": 6}
    found = tuned(tmp_path, **what)
    best = max(found.front, key=lambda trial: trial.gain("throughput"))
    assert best.beats_baseline("throughput") and "short-task" in best.policy
    assert found.beats_baseline and best.policy in str(found)
    rows = found.table()
    assert len(rows) == 2 * len(found.front)
    found.plot(tmp_path / "front.svg")
    assert "<svg" in (tmp_path / "front.svg").read_text()
    again = tuned(tmp_path, **what)
    assert list(again.table()) == list(rows)


def test_objectives_are_figures_with_a_direction(tmp_path: Path) -> None:
    with pytest.raises(placewise.InputError, match="objectives: speed is no figure"):
        tuned(tmp_path, objectives=["speed"])
    with pytest.raises(placewise.InputError, match="write -migrations_wakeup"):
        tuned(tmp_path, objectives=["migrations_wakeup"])
