"""`python -m llama_index.ragkit.check_llm`."""

import logging
import sys

from llama_index.ragkit.check_llm.command import main

__all__: list[str] = []

if __name__ == "__main__":
    logging.basicConfig(level=logging.CRITICAL)  # what failed is in the table
    sys.exit(main())
