"""Users' tables: reading a file, which column plays which part, and features as a matrix.

The program and ``fairgrad.datasets`` both read tables through this room.
"""
