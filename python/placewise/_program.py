"""The program that does the work: where it is, and what it answers.

It is a process of its own, so that what it does outlives nothing and blocks no thread of Python.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Union

StrPath = Union[str, "os.PathLike[str]"]
Several = Union[str, Sequence[str]]

SCHEMA = 1
"""The number of the JSON that this package reads."""


class Error(Exception):
    """Something went wrong that is not the input's fault, such as a full disk. Its text is one line."""


class InputError(Error, ValueError):
    """The input is at fault: an argument, a file, a name or a value. Its text is one line that says
    which, and what was expected."""


@lru_cache(maxsize=None)
def program() -> str:
    """The path of the program: that of the package, unless the variable PLACEWISE names another."""
    named = os.environ.get("PLACEWISE")
    if named:
        return named
    of_package = Path(sysconfig.get_path("scripts"), "placewise")
    if of_package.is_file():
        return str(of_package)
    found = shutil.which("placewise")
    if found is None:
        raise Error("the program placewise is not installed; pip install the wheel of this package")
    return found


def run(args: Iterable[StrPath]) -> str:
    """What the program prints, as text."""
    command = [program(), *(os.fspath(arg) for arg in args)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return done.stdout
    lines = done.stderr.strip().splitlines() or [f"placewise ended with {done.returncode}"]
    problem = lines[-1].removeprefix("placewise: ")
    raise (InputError if done.returncode == 2 else Error)(problem)


def run_json(args: Iterable[StrPath]) -> dict[str, Any]:
    """What the program prints, as JSON."""
    return checked(json.loads(run([*args, "--format", "json"])))


def run_lines(args: Iterable[StrPath]) -> list[dict[str, Any]]:
    """What the program prints, as lines of JSON without their number."""
    lines = [checked(json.loads(line)) for line in run(args).splitlines()]
    for line in lines:
        del line["schema"]
    return lines


def checked(value: dict[str, Any]) -> dict[str, Any]:
    """The same, if it is what this package reads."""
    if value["schema"] != SCHEMA:
        raise Error(f"{program()} prints schema {value['schema']}; this package reads {SCHEMA}")
    return value


def options(name: str, values: Several | None) -> list[str]:
    """An option of the command line, once for each value."""
    if values is None:
        return []
    several = [values] if isinstance(values, str) else values
    return [f"--{name}={value}" for value in several]


def version() -> str:
    """The program's version, with the commit that it is of."""
    return run(["--version"]).removeprefix("placewise ").strip()
