"""``python -m fairgrad``, the same as ``fairgrad``; what ``torchrun`` starts."""

from fairgrad.cli.app import main

main()
