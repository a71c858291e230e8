"""``python -m edgebench`` is the same as ``edgebench``."""

from edgebench.cli.main import main

if __name__ == "__main__":
    main()
