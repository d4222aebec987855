"""One file per value that vLLM decides by itself where the config leaves it open."""
