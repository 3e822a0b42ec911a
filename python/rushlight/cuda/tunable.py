"""Tuning of matrix products on CUDA devices, of which there are none."""

from __future__ import annotations

from rushlight._absent import define
from rushlight.cuda import _DEVICE

define(
    globals(),
    _DEVICE,
    """
fails enable(val=True)
fails get_filename()
fails get_max_tuning_duration()
fails get_max_tuning_iterations()
fails get_results()
fails get_rotating_buffer_size()
fails get_validators()
fails is_enabled()
fails mgpu_tune_gemm_in_file(filename_pattern, num_gpus)
fails read_file(filename=None)
fails record_untuned_enable(val=True)
fails record_untuned_is_enabled()
fails set_filename(filename, insert_device_ordinal=False)
fails set_max_tuning_duration(duration)
fails set_max_tuning_iterations(iterations)
fails set_numerical_check_tolerances(enable, atol=1e-05, rtol=1e-05)
fails set_rotating_buffer_size(buffer_size)
fails tune_gemm_in_file(filename)
fails tuning_enable(val=True)
fails tuning_is_enabled()
""",
)
