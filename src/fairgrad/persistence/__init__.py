"""Fitted models as files that anyone can load without running code from them."""

from fairgrad.persistence.files import FORMAT_VERSION, load, save

__all__ = ["FORMAT_VERSION", "load", "save"]
