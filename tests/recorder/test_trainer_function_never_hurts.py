"""Whatever goes wrong where a trainer's function is recorded, the trainer goes on with what it computed."""
