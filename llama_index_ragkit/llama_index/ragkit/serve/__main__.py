"""`python -m llama_index.ragkit.serve`."""

import sys

from llama_index.ragkit.serve.command import main

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(main())
