"""What is measured of tokens: metrics summed over a stream, with intervals and contrasts; k2 in parts; roundings."""
