"""A study gives the same bytes on any executor, and loses nothing when workers die."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from distributed import LocalCluster

import placewise


def figures(plan: dict[str, Any], results: Path, **how: Any) -> list[Any]:
    return list(placewise.study(plan, results=results, **how))


def inodes(results: Path) -> dict[str, int]:
    """Of finished cells: a file that is written anew has another."""
    return {file.name: file.stat().st_ino for file in results.glob("*.json")}


@pytest.fixture
def expected(plan: dict[str, Any], tmp_path: Path) -> list[Any]:
    return figures(plan, tmp_path / "alone", jobs=1)


@pytest.mark.parametrize("batch", [1, 5, None])
def test_a_pool_of_processes(
    plan: dict[str, Any], expected: list[Any], tmp_path: Path, batch: int
) -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        assert figures(plan, tmp_path / "pool", executor=executor, batch=batch) == expected


def test_runs_are_added_on_an_executor_as_without(plan: dict[str, Any], tmp_path: Path) -> None:
    """Two policies that differ, and not by more than noise."""
    plan |= {"precision": 1e-6, "runs": 3, "budget": 4, "machines": ["zen3-2s-nps1"]}
    plan["policies"] = ["baseline", "hint:wake_affine"]
    plan["workload"] = [{"name": "tbench", "cases": ["clients=16;warmup_ms=1;window_ms=10"]}]
    expected = figures(plan, tmp_path / "alone")
    assert {row["seed"] for row in expected} == {1, 2, 3, 4}
    with ThreadPoolExecutor(2) as executor:
        assert figures(plan, tmp_path / "pool", executor=executor) == expected


class Dying(ThreadPoolExecutor):
    """An executor that loses a batch after it is done, and one before."""

    calls = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1

        def call(number: int = self.calls) -> None:
            if number == 1:
                raise OSError("lost before")
            fn(*args, **kwargs)
            if number == 2:
                raise OSError("lost behind")

        return super().submit(call)


def test_what_an_executor_loses_is_asked_for_again(
    plan: dict[str, Any], expected: list[Any], tmp_path: Path
) -> None:
    executor = Dying(1)
    assert figures(plan, tmp_path / "dying", executor=executor, batch=4) == expected
    assert executor.calls == 5, "four batches, and of these one again"


class Dead(ThreadPoolExecutor):
    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        return super().submit(int, "no number")


def test_an_executor_that_does_nothing_is_given_up(plan: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(placewise.Error, match="the executor does not get on"):
        figures(plan, tmp_path / "dead", executor=Dead(1))


def test_dask_loses_nothing_with_a_worker(plan: dict[str, Any], tmp_path: Path) -> None:
    """One of four is killed while it has a cell under way."""
    results = tmp_path / "dask"
    cases = plan["workload"][0]["cases"]
    plan["workload"][0]["cases"] = [case.replace("window_ms=4", "window_ms=60") for case in cases]
    with LocalCluster(n_workers=4, threads_per_worker=1, dashboard_address=":0") as cluster:
        with cluster.get_client() as client, ThreadPoolExecutor(1) as aside:
            executor = client.get_executor()
            study = aside.submit(figures, plan, results, executor=executor, batch=1)
            while len(inodes(results)) < 4:
                time.sleep(0.01)
            before = inodes(results)
            os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)
            rows = study.result()
    after = inodes(results)
    assert len(after) == 16 and before.items() <= after.items(), "nothing is written twice"
    assert rows == figures(plan, tmp_path / "long")


def test_slurm_by_submitit(plan: dict[str, Any], expected: list[Any], tmp_path: Path) -> None:
    import submitit

    executor = submitit.LocalExecutor(folder=tmp_path / "jobs")
    executor.update_parameters(timeout_min=5)
    assert figures(plan, tmp_path / "slurm", executor=executor, batch=8) == expected


def test_slurm_by_dask_jobqueue(plan: dict[str, Any], expected: list[Any], tmp_path: Path) -> None:
    """Workers that are jobs: of a queue that a shell stands for."""
    from dask_jobqueue.local import LocalCluster as ShellCluster

    queue = {"cores": 1, "memory": "1GB", "log_directory": tmp_path / "jobs"}
    with ShellCluster(**queue, scheduler_options={"dashboard_address": ":0"}) as cluster:
        cluster.scale(jobs=2)
        with cluster.get_client() as client:
            executor = client.get_executor()
            assert figures(plan, tmp_path / "slurm", executor=executor, batch=4) == expected


def test_a_plan_is_a_file_or_a_mapping(
    plan: dict[str, Any], expected: list[Any], tmp_path: Path
) -> None:
    file = tmp_path / "alone/plan.toml"
    assert list(placewise.study(file, results=tmp_path / "alone")) == expected
    plan["leave_out"] = [{"machine": "x86-12", "policy": ["short*"]}]
    assert len(figures(plan, tmp_path / "alone")) == 12


def test_a_bad_plan_is_told_with_line_and_field(plan: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(placewise.InputError, match=r"plan.toml: line 3: runs: "):
        figures(plan | {"runs": 0}, tmp_path)
    with pytest.raises(placewise.InputError, match="results: "):
        placewise.study(plan)


def test_changes_are_told_against_the_first(plan: dict[str, Any], tmp_path: Path) -> None:
    rows = placewise.study(plan, results=tmp_path / "alone", changes=True)
    assert [row["change_pct"] is None for row in rows] == [True, False, False, False] * 2
