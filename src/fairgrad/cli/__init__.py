"""The program `fairgrad`: one command from a table to a fair, audited model."""

from fairgrad.cli.app import main

__all__ = ["main"]
