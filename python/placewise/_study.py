"""Studies: the simulations that a plan asks for, on this machine or on any executor.

An executor is whatever has the `submit` of `concurrent.futures.Executor`: a pool of processes or threads,
``Client.get_executor()`` of Dask, ``MPIPoolExecutor`` of mpi4py, that of Ray or Parsl, or submitit's, for
Slurm. What is submitted is a call of the program for a few cells, whose results go into the study's
directory; so it has to be on a file system that all workers share. The program there skips what has a
result, so that a batch that is submitted again, because its worker has died, costs nothing anew.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Optional, Protocol, Union

from ._program import Error, InputError, Several, StrPath, options, run, run_lines
from ._table import Table

LARGEST_BATCH = 32
"""Cells that are submitted together: to start the program costs as much as a small one."""

TRIES = 3
"""How often what is left is submitted without any of it being done."""


class Executor(Protocol):
    """What runs calls somewhere; what `submit` returns has a `result`."""

    def submit(self, fn: Any, /, *args: Any) -> Any:
        """Has a call run."""


def study(
    plan: Union[StrPath, Mapping[str, Any]],
    *,
    results: Optional[StrPath] = None,
    policies: Optional[Several] = None,
    executor: Optional[Executor] = None,
    batch: Optional[int] = None,
    jobs: Optional[int] = None,
    retry: bool = False,
    changes: bool = False,
) -> Table:
    """Simulates what a plan asks for and has no result yet, and returns all figures.

    ``plan`` is the path of a TOML file, or the same as a mapping, which is written to ``plan.toml`` in
    ``results``, the directory with a file for each finished simulation. There is a row for each figure of
    each simulation, in its ``unit``, and one with a ``failure`` for each that failed; with ``changes``
    one for each figure over all runs, as `compare` has them. ``jobs`` is a number of processes on this
    machine, or an ``executor`` has it done ``batch`` cells at a time. ``retry`` simulates anew what has
    failed.
    """
    if isinstance(plan, Mapping):
        if results is None:
            raise InputError("results: a plan that is no file needs a directory for its results")
        plan = _written(plan, Path(results, "plan.toml"))
    asked: list[StrPath] = ["study", os.path.abspath(plan), *options("policy", policies)]
    asked += [] if results is None else [f"--results={os.path.abspath(results)}"]
    how = ["--retry"] * retry
    if executor is None:
        run([*asked, *how, *([] if jobs is None else [f"--jobs={jobs}"])])
    else:
        _study_on(executor, asked, how, batch)
    return Table(run_lines([*asked, "--changes" if changes else "--figures"]))


def _study_on(executor: Executor, asked: list[StrPath], how: list[str], batch: Optional[int]) -> None:
    """Round after round, until no cell is wanted that has no result."""
    before, tries = None, 0
    while cells := [row["cell"] for row in run_lines([*asked, "--emit", *how])]:
        tries = tries + 1 if cells == before else 1
        failure = _submit(executor, asked, cells, batch or _batch(len(cells)))
        if failure is not None and tries == TRIES:
            raise Error(f"the executor does not get on: {failure}") from failure
        before, how = cells, []


def _submit(
    executor: Executor, asked: list[StrPath], cells: Sequence[str], batch: int
) -> Optional[Exception]:
    """Has the cells simulated; what has kept a batch from it, such as the end of its worker."""
    failure: Optional[Exception] = None
    batches = [cells[at : at + batch] for at in range(0, len(cells), batch)]
    futures = [executor.submit(simulate, asked, of_batch) for of_batch in batches]
    for future in futures:
        try:
            future.result()
        except Error:
            raise
        except Exception as error:  # Each executor has its own.
            failure = error
    return failure


def simulate(asked: list[StrPath], cells: Sequence[str]) -> None:
    """What an executor runs: a few cells, one after the other."""
    run([*asked, "--jobs=1", *(f"--cell={cell}" for cell in cells)])


def _batch(cells: int) -> int:
    """So many cells together that dozens of workers have enough to do."""
    return max(1, min(LARGEST_BATCH, cells // 64))


def _written(plan: Mapping[str, Any], path: Path) -> Path:
    """The plan as a file, which is replaced as a whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.with_name(f".{path.name}.{os.getpid()}")
    hidden.write_text(_toml(plan), encoding="utf-8")
    return hidden.replace(path)


def _toml(plan: Mapping[str, Any]) -> str:
    """Values and, behind them, tables; None is left out."""
    given = [(name, value) for name, value in plan.items() if value is not None]
    tables = [(name, value) for name, value in given if _is_tables(value)]
    text = "".join(_assignment(name, value) for name, value in given if not _is_tables(value))
    for name, entries in tables:
        for entry in entries:
            fields = entry.items()
            text += f"\n[[{name}]]\n" + "".join(_assignment(key, value) for key, value in fields)
    return text


def _is_tables(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and isinstance(value[0], Mapping)


def _assignment(name: str, value: Any) -> str:
    # Strings, numbers and lists of JSON are TOML.
    return f"{name} = {json.dumps(value, ensure_ascii=False)}\n"
