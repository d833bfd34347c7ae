"""Placewise decides, predicts and explains where Linux should run a task.

Each function is a verb of the program `placewise`, which comes with this package; its answers are the
JSON that the verb prints, which keeps its names and meaning under a number (``schema``). Figures come as
a `Table`, which pandas, polars and Arrow read; what is wrong with an argument is an `InputError` with one
line that says so.

    >>> import placewise
    >>> len(placewise.machine("zen3-2s-nps1")["cpus"])
    256
"""

from ._study import study
from ._table import Row, Table
from ._tune import Trial, Tuned, tune
from ._verbs import Report, advise, audit, compare, machine, replay, reproduce
from ._program import Error, InputError, version

__all__ = [
    "Error",
    "InputError",
    "Report",
    "Row",
    "Table",
    "Trial",
    "Tuned",
    "advise",
    "audit",
    "compare",
    "machine",
    "replay",
    "reproduce",
    "study",
    "tune",
    "version",
]
