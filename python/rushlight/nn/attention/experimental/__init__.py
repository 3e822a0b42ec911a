"""Attention features that may change."""
