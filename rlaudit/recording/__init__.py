"""What a training asks of vLLM, recorded: the files of shipped/ run inside it; commands install and read them."""
