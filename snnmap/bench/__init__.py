"""Suites on disk, and mappers compared on them."""
