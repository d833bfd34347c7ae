"""A search tells what is better than the baseline with seeds that it has not seen, and else nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import placewise

SHORT = "workers=8;warmup_ms=5;window_ms=100"


def tuned(results: Path, **what: Any) -> placewise.Tuned:
    how = {"machine": "zen3-2s-nps1", "case": SHORT, "trials": 8, "runs": 3, **what}
    return placewise.tune("schbench", results=results, **how)


def test_what_changes_nothing_beats_nothing(tmp_path: Path) -> None:
    found = tuned(tmp_path, objectives=["p99_wakeup_latency"], policies=["hint:none"])
    assert not found.beats_baseline
    assert str(found).endswith("beats the baseline by more than noise")


def test_the_front_has_what_is_better(tmp_path: Path) -> None:
    objectives = ["p99_wakeup_latency", "-migrations_wakeup"]
    what = {"objectives": objectives, "policies": ["short-task"], "hints": ["wake_affine"]}
    found = tuned(tmp_path, **what)
    best = max(found.front, key=lambda trial: trial.gain("p99_wakeup_latency"))
    assert best.beats_baseline("p99_wakeup_latency") and "wake_affine" in best.policy
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
