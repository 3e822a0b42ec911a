"""Sobol sequences' direction numbers, read from directions.bin."""
