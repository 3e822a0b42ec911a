"""Settings of torch.fx."""

disable_progress = True  # passes show no bars
verbose_progress = False
do_not_emit_stack_traces = False  # True: tracing notes no stack traces
