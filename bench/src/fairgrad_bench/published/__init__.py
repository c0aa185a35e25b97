"""Tables that others have published, with rows of ours: ``fairgrad-bench published``.

One file per source (`fairprojection`, `linearpost`, `oxonfair`, `ffb`, `abcfair`) follows the
protocol of its authors. `figures.csv` has their figures. A unit is one model of one seed.
"""

from fairgrad_bench.published.page import differing, with_tables
from fairgrad_bench.published.running import run_published
from fairgrad_bench.published.tables import write_published

__all__ = ["differing", "run_published", "with_tables", "write_published"]
