"""The HTTP server: writing, explaining and listing as JSON and as server-sent events."""
