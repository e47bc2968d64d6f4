"""`python -m llama_index.ragkit.compare`."""

import logging
import sys

from llama_index.ragkit.compare.command import main

__all__: list[str] = []

if __name__ == "__main__":
    # Here, since a reader of files that llama-index brings along configures logging when it is imported.
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    logging.getLogger("llama_index.ragkit.compare").setLevel(logging.INFO)
    sys.exit(main())
