"""Each function is its verb, with the figures in the hands of who analyses them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest

import placewise
from placewise._program import run_json

TRACE = "traces/vm8-k618-nosmt-hackbench-pipe.txt.zst"
SHORT = "groups=1;fds=2;warmup_ms=1;window_ms=4"


@pytest.fixture
def compared() -> placewise.Table:
    policies = ["baseline", "short-task"]
    return placewise.compare("hackbench", machines="x86-12", cases=SHORT, policies=policies, runs=3)


def test_a_machine_tells_its_cpus_and_costs() -> None:
    machine = placewise.machine("zen3-2s-nps1")
    assert machine["llcs"] == 16 and len(machine["cpus"]) == 256
    assert machine.table("cpus").to_arrow().num_rows == 256


def test_a_comparison_is_a_table_of_arrow_pandas_and_polars(compared: placewise.Table) -> None:
    assert compared.about["seed"] == 1
    assert [row["policy"] for row in compared] == ["baseline", "short-task"]
    assert compared[0]["change_pct"] is None and compared[1]["change_pct"] is not None
    arrow = compared.to_arrow()
    assert arrow.column("policy").to_pylist() == ["baseline", "short-task"]
    assert isinstance(compared.to_pandas(), pandas.DataFrame)
    frame = compared.to_polars()
    assert frame["mean"].to_list() == [row["mean"] for row in compared]
    assert polars.DataFrame(compared).equals(frame)


def test_figures_go_into_parquet_and_back(compared: placewise.Table, tmp_path: Path) -> None:
    compared.write_parquet(tmp_path / "rows.parquet")
    back = pyarrow.parquet.read_table(tmp_path / "rows.parquet")
    assert back.equals(compared.to_arrow())


def test_an_audit_has_its_lists_as_tables(repository: Path) -> None:
    audit = placewise.audit(repository / TRACE, policies="short-task")
    assert audit["placements"]["wakeups"] > 0
    assert "cause" in audit.table("causes").columns


def test_a_replay_is_a_workload(repository: Path, tmp_path: Path) -> None:
    workload = tmp_path / "workload.json"
    replay = placewise.replay(repository / TRACE, output=workload)
    figures = {row["figure"] for row in replay.table("figures") if row["task"] is None}
    assert replay["tasks"] > 0 and len(figures) > 1
    assert replay["is_trusted"] == (replay["blamed"] is None)
    assert len(placewise.compare(workload, machines="x86-12", runs=1)) > 0


def test_advice_has_its_commands_and_what_undoes_them(tmp_path: Path) -> None:
    trace = tmp_path / "trace.txt"
    knobs = ["WA_IDLE=0", "WA_WEIGHT=0"]
    what = [f"--set={knob}" for knob in knobs] + ["--workload=netperf", "--case=threads=2;window_ms=20"]
    where = ["--machine=icx-2s", "--kernel=v6.12", "--runs=1", f"--trace={trace}"]
    run_json(["compare", *where, *what])
    advised = placewise.advise(trace, machine="icx-2s", goal="throughput", task="netperf", jobs=2)
    assert advised["tasks"] == ["netperf"] and advised["is_trusted"]
    rows = advised.table("advice")
    assert 0 < len(rows) <= 5 and rows[0]["change_low_pct"] > 0
    assert rows[0]["commands"] and rows[0]["undo"]
    with pytest.raises(placewise.InputError, match="--budget 1: .* runs at least"):
        placewise.advise(trace, machine="icx-2s", budget=1)


def test_a_study_of_published_figures_is_predicted(tmp_path: Path) -> None:
    header = "series,machine,kernel,workload,case,metric,policy,value,unit,better,spread_pct,change_pct"
    row = "s,uma-8,v6.0,schedpipe,window_ms=2,throughput,baseline,100000,ops/s,higher,0.5,"
    study = tmp_path / "study.csv"
    study.write_text(f"{header}\n{row}\n")
    (predicted,) = placewise.reproduce(study)
    assert predicted["value"] == 100000 and predicted["predicted"] > 0


def test_bad_input_is_an_exception_with_the_one_line() -> None:
    with pytest.raises(placewise.InputError, match="^machine `zen9`: is not a preset") as caught:
        placewise.machine("zen9")
    assert "\n" not in str(caught.value) and isinstance(caught.value, ValueError)


def test_without_pyarrow_there_are_rows(compared: placewise.Table, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert len(compared) == 2
    with pytest.raises(placewise.Error, match="pip install"):
        compared.to_arrow()


def test_the_five_lines_of_the_readme_run(repository: Path) -> None:
    text = (repository / "README.md").read_text()
    block = re.search(r"```python\n(.*?)```", text, re.S)
    assert block is not None
    lines = block.group(1)
    assert len(lines.strip().splitlines()) == 5, lines
    done = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True)
    assert done.returncode == 0 and "short-task" in done.stdout, done.stderr


def test_types_hold(repository: Path) -> None:
    python = repository / "python"
    mypy = [sys.executable, "-m", "mypy", "--strict"]
    done = subprocess.run(mypy, cwd=python, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
