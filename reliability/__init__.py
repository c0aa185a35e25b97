"""Faults, odd inputs and load: what the project promises, tried. See ``__main__``."""
