"""What the readers of plain vLLM share: flags, images, invocations, recorded arguments and weight updates."""
