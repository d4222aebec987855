"""What a run will hand to vLLM, whatever file it was written in."""
