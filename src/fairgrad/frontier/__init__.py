"""The trade-off between accuracy and fairness: many models in one pass, and the choice of one."""

from fairgrad.frontier.frontier import Frontier
from fairgrad.frontier.judging import hypervolume, non_dominated

__all__ = ["Frontier", "hypervolume", "non_dominated"]
