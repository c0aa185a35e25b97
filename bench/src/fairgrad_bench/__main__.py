"""``python -m fairgrad_bench``: the program."""

from fairgrad_bench.program import main

if __name__ == "__main__":
    main()
