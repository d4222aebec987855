import requests


def update(server: str, checkpoint: str) -> None:
    requests.post(f"{server}/pause", params={"mode": "keep", "clear_cache": "false"})
    requests.post(f"{server}/update_weights", json={"path": checkpoint})
    requests.post(f"{server}/resume")
