"""One file per data set: each holds a ``SCHEMA``; a new file here is a new data set."""
