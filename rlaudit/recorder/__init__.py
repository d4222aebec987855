"""Recording what a training really asked of vLLM: the file that runs inside it, the doors to it, the reader."""
