"""The paper's method and its baselines behind one interface, one file each."""

from fairgrad.methods.interface import Candidate, Method, Settings, Task
from fairgrad.methods.listing import methods

__all__ = ["Candidate", "Method", "Settings", "Task", "methods"]
