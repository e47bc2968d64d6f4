"""`python -m llama_index.ragkit.compare`."""

import sys

from llama_index.ragkit.compare.command import main

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(main())
