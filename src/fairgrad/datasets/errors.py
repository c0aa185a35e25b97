"""Errors of finding and fetching data; all are OSErrors, as their causes are."""

from __future__ import annotations


class DataNotFoundError(FileNotFoundError):
    """No usable copy of a data set lies on this machine; the message gives the reasons.

    Example:
        >>> issubclass(DataNotFoundError, OSError)
        True
    """


class CorruptFileError(OSError):
    """A file's content is not the expected one.

    Example:
        >>> issubclass(CorruptFileError, OSError)
        True
    """


class FetchError(OSError):
    """A data set could not be fetched; nothing was written.

    Example:
        >>> issubclass(FetchError, OSError)
        True
    """
