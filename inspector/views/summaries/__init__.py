"""Summaries of a session: recorded, fresh, audited; its memory; what the API counts. Nothing is sent unasked."""
