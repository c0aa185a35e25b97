"""``python -m fairgrad``, the same as ``fairgrad``."""

from fairgrad.cli.app import main

main()
