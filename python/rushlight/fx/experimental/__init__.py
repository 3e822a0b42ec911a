"""Tracing of the operators that a function calls."""
