"""snnmap: put spiking neural networks onto neuromorphic chips."""
