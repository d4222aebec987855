"""What is of vLLM: the scripts that start it, what its workers load, and which engine of a release runs."""
