"""One contract per table, in ODCS; dbt's files, Soda's contracts and Arrow's schemas follow from it.

- `sync(project, check=False)` writes models/**/*.yml from contracts/.
- `declared(project, table)` lists every check of a table, each with the SQL that shows what breaks it.
- `soda_contract(project, table)` is the same as a Soda contract; `lake.schema.arrow(project, table)` the Arrow schema.
"""

from lake.contract.checks import Check, declared
from lake.contract.dbt import missing_counterparts
from lake.contract.soda import soda_contract
from lake.contract.sync import sync

__all__ = ["Check", "declared", "missing_counterparts", "soda_contract", "sync"]
