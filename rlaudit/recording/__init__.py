"""Recording what a training asks of vLLM: the files of shipped/, which run inside it, the commands that install them, the reader."""
