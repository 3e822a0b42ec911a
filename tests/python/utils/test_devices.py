"""Devices that are not in the build, the CPU's streams, and settings of other libraries."""

import copy
import inspect
import pickle

import pytest
import rushlight as torch


@pytest.mark.parametrize("name", ["cuda", "xpu", "mps", "mtia", "accelerator"])
def test_absent_devices_say_so(name):
    module = getattr(torch, name)
    assert module.is_available() is False
    assert module.device_count() == 0


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda: torch.cuda.synchronize(), AssertionError),
        (lambda: torch.cuda.current_stream(), AssertionError),
        (lambda: torch.cuda.get_device_capability(0), AssertionError),
        (lambda: torch.xpu.current_device(), AssertionError),
        (lambda: torch.mps.empty_cache(), RuntimeError),
        (lambda: torch.mtia.current_device(), RuntimeError),
        (lambda: torch.accelerator.synchronize(), RuntimeError),
        (lambda: torch.cuda.nvtx.range_push("x"), AssertionError),
        (lambda: torch.cuda.comm.gather([]), AssertionError),
    ],
)
def test_what_needs_a_device_names_the_reason(call, error):
    with pytest.raises(error, match="not compiled with|none is available"):
        call()


def test_classes_of_absent_devices_have_no_objects():
    for make in (torch.cuda.Stream, torch.cuda.Event, torch.cuda.CUDAGraph, torch.xpu.Event):
        assert not isinstance(torch.ones(1), make)
        with pytest.raises(RuntimeError, match="dummy base class"):
            make()
    assert not isinstance(torch.ones(1), torch.cuda.FloatTensor)
    with pytest.raises(RuntimeError, match="FloatTensor"):
        torch.cuda.FloatTensor(2)


def test_counts_and_statistics_are_of_nothing():
    assert torch.cuda.memory_reserved() == torch.cuda.max_memory_reserved() == 0
    assert torch.cuda.memory_stats() == {}
    assert torch.cuda.get_arch_list() == [] and torch.cuda.get_gencode_flags() == ""
    assert torch.cuda.manual_seed_all(3) is None
    assert torch.cuda.memory.memory_allocated is torch.cuda.memory_allocated
    assert torch.accelerator.current_accelerator() is None


def test_contexts_without_a_device_are_empty():
    with torch.cuda.stream(None), torch.cuda.device(-1), torch.cuda.device_of(torch.ones(1)):
        pass
    with pytest.raises(AssertionError, match="device"), torch.cuda.device(0):
        pass


def test_signatures_are_pytorchs():
    assert str(inspect.signature(torch.cuda.memory_summary)) == "(device=None, abbreviated=False)"
    assert list(inspect.signature(torch.cuda.Event.record).parameters) == ["self", "stream"]
    assert torch.cuda.synchronize.__doc__ and torch.cuda.Stream.__doc__


def test_the_stream_of_the_cpu():
    stream, event = torch.Stream(), torch.Event("cpu", enable_timing=True)
    assert stream.query() and stream.device == torch.device("cpu")
    assert stream == torch.Stream("cpu") and len({stream, torch.Stream()}) == 1
    stream.record_event(event)
    later = stream.record_event(torch.Event(enable_timing=True))
    assert 0 <= event.elapsed_time(later) < 60_000
    with pytest.raises(ValueError, match="enable_timing"):
        event.elapsed_time(torch.Event())
    with pytest.raises(RuntimeError, match="cuda"):
        torch.Stream("cuda")


def test_streams_of_the_module_cpu():
    other = torch.cpu.Stream()
    before = torch.cpu.current_stream()
    with torch.cpu.stream(other):
        assert torch.cpu.current_stream() is other
    assert torch.cpu.current_stream() is before
    assert torch.cpu.get_capabilities()["architecture"]
    with torch.cpu.amp.autocast():
        assert torch.is_autocast_enabled("cpu")


def test_modules_of_devices():
    assert torch.get_device_module() is torch.cpu
    assert torch.get_device_module("cuda") is torch.cuda
    assert torch.get_device_module(torch.device("cpu")) is torch.cpu
    with pytest.raises(RuntimeError, match="corresponding module"):
        torch.get_device_module("meta")
    with pytest.raises(RuntimeError, match="Invalid value of device"):
        torch.get_device_module(3)


def test_settings_are_kept():
    cudnn = torch.backends.cudnn
    assert (cudnn.enabled, cudnn.benchmark, cudnn.deterministic) == (True, False, False)
    cudnn.benchmark = True
    assert cudnn.benchmark
    with cudnn.flags(enabled=False):
        assert not cudnn.enabled and not cudnn.benchmark
        cudnn.deterministic = True
    assert cudnn.enabled and cudnn.benchmark and not cudnn.deterministic
    cudnn.benchmark = False
    with pytest.raises(RuntimeError, match="expects a bool, but got int"):
        cudnn.enabled = 1
    assert cudnn.version() is None and not cudnn.is_available()


def test_settings_of_matrix_products():
    matmul = torch.backends.cuda.matmul
    matmul.allow_tf32 = True
    assert matmul.allow_tf32
    matmul.allow_tf32 = False
    with pytest.raises(AttributeError, match="Unknown attribute speed"):
        matmul.speed = 1
    with pytest.raises(RuntimeError, match="Invalid precision"):
        torch.backends.fp32_precision = "exact"
    with torch.backends.flags(fp32_precision="ieee"):
        assert torch.backends.fp32_precision == "ieee"
    assert torch.backends.fp32_precision == "none"


def test_precision_of_matrix_products_is_that_of_the_nearest_setting():
    in_force = torch._C._get_float32_matmul_precision
    mkldnn = torch.backends.mkldnn
    try:
        with torch.backends.flags(fp32_precision="bf16x6"):
            assert in_force() == "split"
            mkldnn.fp32_precision = "tf32"
            assert in_force() == "high"
            mkldnn.matmul.fp32_precision = "bf16"
            assert in_force() == "medium"
            mkldnn.matmul.fp32_precision = "ieee"
            assert in_force() == "highest"
            mkldnn.matmul.fp32_precision = mkldnn.fp32_precision = "none"
            assert in_force() == "split"
            assert torch.get_float32_matmul_precision() == "highest"
        torch.set_float32_matmul_precision("high")
        assert in_force() == "high"
    finally:
        mkldnn.matmul.fp32_precision = mkldnn.fp32_precision = "none"
        torch.set_float32_matmul_precision("highest")
    assert in_force() == "highest"
    with pytest.raises(RuntimeError, match="must be 'highest', 'high' or 'medium', got 'split'"):
        torch.set_float32_matmul_precision("split")


def test_three_parts_are_as_near_as_f32():
    torch.manual_seed(0)
    a, b, bias = torch.randn(160, 400), torch.randn(400, 160), torch.randn(160)
    wanted = torch.addmm(bias.double(), a.double(), b.double())
    with torch.backends.flags(fp32_precision="bf16x6"):
        error = (torch.addmm(bias, a, b) - wanted).abs()
        assert torch.equal(a @ torch.eye(400), a)
    assert error.max() <= 2 * (torch.addmm(bias, a, b) - wanted).abs().max()


def test_libraries_that_are_not_used():
    backends = torch.backends
    for name in ("mkl", "mkldnn", "openmp", "mps", "nnpack", "kleidiai"):
        assert getattr(backends, name).is_available() is False
    assert backends.cpu.get_cpu_capability() in ("DEFAULT", "AVX2", "AVX512")
    with pytest.raises(RuntimeError, match="no quantised operators"):
        backends.quantized.engine = "fbgemm"
    with pytest.raises(RuntimeError, match="without MKL"), backends.mkl.verbose(1):
        pass


def test_attention_choices_of_the_older_form():
    backends = torch.nn.attention.SDPBackend
    with pytest.warns(FutureWarning), torch.backends.cuda.sdp_kernel(enable_flash=False):
        allowed = torch.nn.attention._cur_sdpa_kernel_backends()
        assert backends.FLASH_ATTENTION not in allowed and backends.MATH in allowed


def test_build_description():
    assert "Rushlight" in torch.__config__.show()
    assert str(torch.get_num_threads()) in torch.__config__.parallel_info()


def test_conversions_that_make_new_parameters():
    layer = torch.nn.Linear(2, 2)
    before = layer.weight
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        layer.double()
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(False)
    assert layer.weight is not before and before.dtype == torch.float32
    again = layer.weight
    assert layer.float().weight is again


def test_absent_devices_can_be_named():
    device = torch.device("cuda", 1)
    assert (device.type, device.index, str(device)) == ("cuda", 1, "cuda:1")
    assert repr(device) == "device(type='cuda', index=1)"
    assert device == torch.device("cuda:1") and hash(device) == hash(torch.device("cuda:1"))
    assert device != torch.device("cuda") and torch.device("cuda") != torch.device("cpu")
    assert torch.device("cuda:1") == copy.deepcopy(device) == pickle.loads(pickle.dumps(device))
    assert torch.device("mps").type == "mps" and torch.ones(1).device != torch.device("mps")


@pytest.mark.parametrize("device", ["cuda", torch.device("cuda:0")])
def test_nothing_is_put_on_an_absent_device(device):
    calls = (
        lambda: torch.ones(1, device=device),
        lambda: torch.ones(1).to(device),
        lambda: torch.zeros_like(torch.ones(1), device=device),
        lambda: torch.tensor([1.0], device=device),
        lambda: torch.nn.Linear(1, 1).to(device),
        lambda: torch.nn.Linear(1, 1, device=device),
    )
    for call in calls:
        with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
            call()
    with pytest.raises(AssertionError, match="CUDA"), torch.device(device):
        torch.ones(1)


def test_devices_that_do_not_exist():
    with pytest.raises(RuntimeError, match="Expected one of cpu, .* foo"):
        torch.device("foo")
    for text in ("cuda:", "cuda:x", "cuda:-1", "cuda:1x"):
        with pytest.raises(RuntimeError, match="Invalid device string"):
            torch.device(text)
    with pytest.raises(RuntimeError, match="not linked with support for mps"):
        torch.ones(1, device="mps")


def test_moving_to_cuda_is_refused():
    for call in (torch.ones(1).cuda, torch.nn.Linear(1, 1).cuda):
        with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
            call()
