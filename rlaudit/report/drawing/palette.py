"""Colours by what they mean. In a drawing each is a placeholder that the page's style sheet gives its real colour."""

INK = "#010001"
MUTED = "#010002"
GRID = "#010003"
BAND = "#010004"
PAPER = "#010005"
REFERENCE = "#010006"
CANDIDATE = "#010007"
PARITY = "#010008"
OTHER = "#010009"
PLACEHOLDERS = {
    INK: "ink",
    MUTED: "muted",
    GRID: "grid",
    BAND: "band",
    PAPER: "paper",
    REFERENCE: "reference",
    CANDIDATE: "candidate",
    PARITY: "parity",
    OTHER: "other",
}
