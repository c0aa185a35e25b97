"""``python -m fairgrad.cli``, the same as ``fairgrad``."""

from fairgrad.cli.app import main

main()
