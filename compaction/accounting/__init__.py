"""Tokens, context, windows and cost: exact where recorded, with method and error where not."""
