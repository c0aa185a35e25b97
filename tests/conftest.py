"""Settings shared by all tests."""

import os

import torch
from hypothesis import settings

# One thread: small problems are slower with two, and tests run in parallel processes.
torch.set_num_threads(1)

# Machines under load make single examples slow, which says nothing about the code.
settings.register_profile("default", deadline=None, max_examples=100)
settings.register_profile("thorough", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
