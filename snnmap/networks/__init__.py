"""Layers, generators and model files -> Hypergraph."""
