"""One file per dialect: how it is recognised, where its vLLM settings are, and what its own code does to them."""
