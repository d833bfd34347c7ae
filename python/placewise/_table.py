"""Rows of figures, and what reads them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._program import Error, StrPath

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

Row = Mapping[str, Any]


class Table(Sequence[Row]):
    """Rows of figures, each a mapping from the names of columns to values; None where there is none.

    It is what Arrow calls a table: whatever reads Arrow's streams reads it, such as
    ``polars.DataFrame(table)`` or ``duckdb.sql("from table")``. All but the rows themselves needs
    pyarrow (``pip install placewise[arrow]``).
    """

    def __init__(self, rows: Sequence[Row], about: Mapping[str, Any] | None = None) -> None:
        self._rows = list(rows)
        self.about: Mapping[str, Any] = about or {}
        """What goes for all rows: seed, machines and so on, as in the JSON of the verb."""

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def __getitem__(self, at: Any) -> Any:
        return self._rows[at]

    def __repr__(self) -> str:
        return f"<Table: {len(self)} rows of {', '.join(self.columns)}>"

    @property
    def columns(self) -> list[str]:
        """Their names, in the order of the JSON."""
        return list(dict.fromkeys(name for row in self._rows for name in row))

    def to_arrow(self) -> pyarrow.Table:
        """As a table of Arrow."""
        try:
            import pyarrow
        except ImportError:
            raise Error("pyarrow is not installed; pip install placewise[arrow]") from None
        columns = {name: [row.get(name) for row in self._rows] for name in self.columns}
        return pyarrow.table(columns)

    def to_pandas(self) -> pandas.DataFrame:
        """As a data frame of pandas."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """As a data frame of polars."""
        import polars

        return polars.DataFrame(self.to_arrow())

    def write_parquet(self, path: StrPath) -> None:
        """Writes a Parquet file."""
        table = self.to_arrow()
        import pyarrow.parquet

        pyarrow.parquet.write_table(table, os.fspath(path))

    def write_json_lines(self, path: StrPath) -> None:
        """Writes a line of JSON for each row."""
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in self._rows)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        table: Any = self.to_arrow()
        return table.__arrow_c_stream__(requested_schema)
