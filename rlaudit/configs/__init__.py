"""What a run will hand to vLLM, read from any kind of file that it may be written in."""
