"""The paper's method and its baselines behind one interface, one file each."""

from fairgrad_bench.methods.interface import Candidate, Method, MethodTask, methods

__all__ = ["Candidate", "Method", "MethodTask", "methods"]
