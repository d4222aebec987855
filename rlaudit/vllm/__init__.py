"""What each vLLM release takes, defaults to and decides by itself."""
