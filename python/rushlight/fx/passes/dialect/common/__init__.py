"""Passes over any set of operators."""
