"""Summaries: by a model with the person's consent, session memory, and the audit of a summary."""
