"""`python -m rlaudit` is `rlaudit`."""

from rlaudit.cli.app import main

if __name__ == "__main__":
    main()
