"""The sequential algorithms of the literature, adapted to all limits: what to compare with."""
