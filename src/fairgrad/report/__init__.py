"""Turns audits, frontiers and training histories into charts and one self-contained page."""

from fairgrad.report.figure import ReportFigure, save_figures
from fairgrad.report.frontier import FrontierData, frontier_figures
from fairgrad.report.history import history_figures
from fairgrad.report.report import Report

__all__ = [
    "FrontierData",
    "Report",
    "ReportFigure",
    "frontier_figures",
    "history_figures",
    "save_figures",
]
