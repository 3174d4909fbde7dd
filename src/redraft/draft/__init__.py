"""First drafts: where a chain starts."""
