"""Operators that programs define: schemas, kernels and how they are called."""
