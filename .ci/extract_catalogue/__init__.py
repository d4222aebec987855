"""Makes the catalogue of a vLLM release from its sources, without importing or running any of them."""
