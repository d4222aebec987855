"""Recording what a training asks of vLLM: the files of shipped/ run inside it, commands install them, a reader reads."""
