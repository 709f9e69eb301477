"""Networks and mappings as files."""
