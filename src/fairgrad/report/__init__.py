"""Turns audits, frontiers and training histories into charts and one self-contained page.

Names imported under their own name are for those who draw figures of their own, as the benchmark
does; they are not in the reference.
"""

from fairgrad.checks import needing

NO_CHARTS = (
    "Pages and charts need {name}, which is not installed here. Run "
    "`pip install 'fairgrad[report]'`."
)

with needing("altair", "jinja2", message=NO_CHARTS):
    from fairgrad.report.charts import (
        FrontierData,
        frontier_figures,
        history_figures,
        monitor_figures,
    )
    from fairgrad.report.figure import SERIES as SERIES
    from fairgrad.report.figure import ReportFigure, save_figures
    from fairgrad.report.figure import data as data
    from fairgrad.report.figure import number as number
    from fairgrad.report.figure import series as series
    from fairgrad.report.figure import var as var
    from fairgrad.report.report import Report

__all__ = [
    "FrontierData",
    "Report",
    "ReportFigure",
    "frontier_figures",
    "history_figures",
    "monitor_figures",
    "save_figures",
]
