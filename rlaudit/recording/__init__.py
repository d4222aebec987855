"""Recording what a training asks of vLLM: the file that runs inside it, the commands that install it, the reader."""
