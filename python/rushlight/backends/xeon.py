"""Launching programs on Intel's servers; kernels and threads need no launcher here."""
