"""What a rollout engine and its trainer are set to, and where that is written."""
