"""Random programs: compiled, they give eager's results bit for bit.

    python tests/python/compile/programs.py COUNT [--seed N] [--backend NAME] [--lines N]
                                                  [--budget B]

runs COUNT programs, forward and backward, and prints each that differs, cut down to the lines that
matter, with its seed. A program is text: lines over variables v0, v1, ... and inputs x0, x1, ....
With a memory budget most variables are seen by nobody but autograd, inputs may be written before
backward, and backward may come twice.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import sys
import time
import warnings

import numpy as np
import rushlight as torch

SIZES = (1, 1, 2, 3, 4, 5, 7, 8, 16, 33)
FLOATS = ("float32", "float32", "float32", "float64", "bfloat16", "float16")

UNARY = (
    "{a}.sin() {a}.cos() {a}.tanh() {a}.sigmoid() {a}.relu() {a}.abs() -{a} {a}.square() "
    "{a}.clamp(-1,1) {a}.exp() {a}.abs().sqrt() {a}.abs().log1p() {a}.floor() {a}.round() "
    "{a}.sign() {a}.erf() {a}.rsqrt() {a}.reciprocal() {a}.clone() {a}.contiguous() {a}.detach() "
    "{a}.float() {a}.double() {a}.bfloat16() {a}.half() {a}*{s} {a}+{s} {s}-{a} {a}/{s} {a}**2 "
    "{a}**3 {a}>{s} {a}.isnan() {a}.nan_to_num() {a}.int() {a}.bool() {a}.hardtanh() "
    "F.gelu({a}) F.silu({a}) F.softplus({a}) F.leaky_relu({a},0.1) F.elu({a}) F.hardswish({a}) "
    "F.mish({a}) F.logsigmoid({a}) F.gelu({a},approximate='tanh') F.threshold({a},0.1,0.5) "
    "torch.where({a}>0,{a},{a}*0.1) {a}.masked_fill({a}>{s},{s}) {a}.lerp({a}.sin(),0.3) "
    "torch.zeros_like({a}) torch.ones_like({a})*{s} torch.full_like({a},{s}) {a}.fmod(0.7) "
    "{a}.remainder(0.7) {a}.expm1() {a}.atan() {a}.sinh() {a}.asinh() {a}.exp2() {a}.trunc()"
).split()
BINARY = (
    "{a}+{b} {a}-{b} {a}*{b} {a}/({b}.abs()+1) torch.maximum({a},{b}) torch.minimum({a},{b}) "
    "torch.where({a}>{b},{a},{b}) {a}.atan2({b}) {a}<{b} {a}=={b} torch.add({a},{b},alpha=3) "
    "torch.addcmul({a},{b},{a},value=0.5) torch.addcdiv({a},{b},{b}.abs()+1) {a}.lerp({b},0.25) "
    "{a}.fmax({b}) torch.hypot({a},{b}) {a}.copysign({b}) ({a}>0)&({b}>0) ({a}>0)|({b}>0) "
    "F.mse_loss({a},{b}) F.smooth_l1_loss({a},{b}) torch.abs({a}-{b}).pow(1.5)"
).split()
REDUCE = (
    "{a}.sum() {a}.mean() {a}.sum({d}) {a}.sum({d},keepdim=True) {a}.mean({d}) {a}.amax({d}) "
    "{a}.amin({d},keepdim=True) {a}.max({d}).values {a}.max({d}).indices {a}.argmin({d}) "
    "{a}.var({d}) {a}.std({d},keepdim=True) {a}.var({d},correction=0) {a}.softmax({d}) "
    "{a}.log_softmax({d}) {a}.logsumexp({d}) {a}.cumsum({d}) {a}.cumprod({d}) {a}.prod({d}) "
    "{a}.norm() {a}.norm(dim={d}) ({a}>0).any({d}) ({a}>0).all({d}) {a}.max() {a}.min() "
    "{a}.abs().sum({d}) {a}-{a}.mean({d},keepdim=True) {a}/{a}.norm(dim={d},keepdim=True) "
    "F.layer_norm({a},{a}.shape[-1:]) F.rms_norm({a},{a}.shape[-1:]) F.normalize({a},dim={d}) "
    "{a}.cummax({d}).values {a}.median() {a}.sum(dtype=torch.float64) {a}.nansum({d}) "
    "torch.var_mean({a},{d})[1] {a}.count_nonzero({d}) {a}.sum((0,-1)) {a}.std() "
    "{a}.argmax() {a}.logcumsumexp({d})"
).split()
VIEW = (
    "{a}.t() {a}.transpose({d},{e}) {a}.reshape(-1) {a}.view(-1) {a}.flatten() {a}[{i}] {a}[1:] "
    "{a}[:-1] {a}[...,::2] {a}[...,None] {a}.unsqueeze({d}) {a}.squeeze() {a}.squeeze({d}) "
    "{a}.mT {a}.narrow({d},0,1) {a}.select({d},0) {a}.chunk(2,{d})[0] {a}.split(1,{d})[-1] "
    "{a}.unbind({d})[0] {a}.diagonal() {a}.expand(3,*{a}.shape) "
    "{a}.permute(*range({a}.dim())[::-1]) {a}.expand_as({b}) {a}.movedim({d},{e}) "
    "{a}.unflatten({d},(-1,1)) {a}.as_strided((2,),(1,)) "
    "{a}.view_as({b}) {a}.broadcast_to((2,*{a}.shape)) {a}.swapaxes({d},{e}) {a}.unfold({d},2,2)"
).split()
INPLACE = (
    "{a}.add_({b}) {a}.mul_({s}) {a}.sub_({b},alpha=2) {a}.relu_() {a}.zero_() {a}.fill_({s}) "
    "{a}.clamp_(-1,1) {a}.copy_({b}) {a}.sin_() {a}.masked_fill_({a}>0,{s}) {a}[{i}].mul_(2) "
    "{a}[1:].add_(1) {a}[...,0].zero_() {a}.t().add_(1) {a}.view(-1)[0].fill_({s}) {a}.exp_() "
    "{a}.addcmul_({b},{b}) {a}.lerp_({b},0.5) {a}.neg_() {a}.div_(2) {a}.floor_() {a}.cumsum_({d}) "
    "{a}.index_fill_({d},IDX,{s}) {a}.index_add_({d},IDX,{b}) {a}.squeeze_() {a}.unsqueeze_(0) "
    "{a}.transpose_({d},{e}) {a}.sigmoid_() {a}.tril_() {a}.requires_grad_() {a}.clamp_min_({b}) "
    "{a}.detach().mul_(2) {a}.data.add_(1) {a}.__setitem__({i},{s}) {a}.__setitem__(0,{b}) "
    "{a}.__setitem__({a}>0,{s}) {a}.__setitem__(IDX,{s}) {a}.set_({b})"
).split()
MATRIX = (
    "{a}@{b} {a}@{a}.mT {a}@{b}.mT torch.matmul({a},{b}) F.linear({a},{b}) torch.mm({a},{b}) "
    "torch.bmm({a},{b}) torch.outer({a},{b}) torch.addmm({a},{b},{b}.t()) torch.dot({a},{b}) "
    "torch.einsum('...i,...i->...',{a},{b}) torch.mv({a},{b}) torch.baddbmm({a},{b},{b}.mT) "
    "torch.relu({a}@{b}.mT)*2 {a}@{b}+1 F.linear({a},{b},{b}.sum(-1))"
).split()
INDEX = (
    "{a}[IDX] {a}[{a}>0] {a}.gather({d},{a}.argsort({d})) {a}.index_select({d},IDX) "
    "{a}.sort({d}).values {a}.sort({d}).indices {a}.topk(1,{d}).values torch.cat([{a},{b}],{d}) "
    "torch.stack([{a},{a}]) {a}.roll(1,{d}) {a}.flip({d}) F.pad({a},(1,2)) {a}.tril() {a}.triu(1) "
    "{a}.nonzero() {a}.masked_select({a}>0) F.embedding(IDX,{a}) {a}.repeat(2,*[1]*{a}.dim()) "
    "{a}.take(IDX) {a}.repeat_interleave(2) F.one_hot(IDX) {a}.unique() {a}.take_along_dim(IDX) "
    "{a}.scatter({d},{a}.argmax({d},keepdim=True),{s}) torch.tile({a},(2,)) torch.diff({a}) "
    "{a}.index_add({d},IDX,{b}) torch.vstack([{a},{b}]) {a}.argsort({d}) torch.arange(5)*2 "
    "F.cross_entropy({a},{a}.argmax(-1)) torch.eye(3) torch.linspace(0,1,5) "
    "{a}.index_put((IDX,),{b})"
).split()
RANDOM = (
    "torch.rand_like({a}) torch.randn(3) F.dropout({a},0.4) {a}+torch.rand({a}.shape) "
    "torch.randint(0,5,(4,)) {a}.clone().uniform_() {a}.clone().normal_() torch.randperm(5) "
    "{a}.abs().clamp(0,1).bernoulli() torch.manual_seed(7)and({a}+torch.rand(1))"
).split()
VALUES = (
    "{a}*{a}.sum().item() ({a}if(bool({a}.sum()>0))else(-{a})) {a}+len(str({a})) "
    "{a}+float({a}.mean()) {a}*(len({a}.tolist())if({a}.dim())else(2)) "
    "torch.from_numpy({a}.detach().numpy().copy()) {a}+int({a}.numel()) {a}*{a}.shape[0] "
    "torch.tensor({a}.tolist()) torch.tensor({a}.max().item())+{a}"
).split()
KINDS = (
    (8, UNARY),
    (6, BINARY),
    (6, REDUCE),
    (5, VIEW),
    (4, INPLACE),
    (3, MATRIX),
    (4, INDEX),
    (1, RANDOM),
    (1, VALUES),
)


class Program:
    """Inputs, and lines that run on them."""

    def __init__(
        self, seed: int, inputs: list[tuple], lines: list[str], budget: float | None = None
    ) -> None:
        self.seed = seed
        self.budget = budget
        self.inputs = inputs  # (shape, dtype, requires grad, how it lies in memory)
        self.lines = lines

    def make_inputs(self) -> list:
        """The inputs, the same each time."""
        torch.manual_seed(self.seed)
        made = []
        for shape, dtype, grad, layout in self.inputs:
            if layout == "transposed":
                x = torch.randn(shape[::-1], dtype=torch.float64).permute(*range(len(shape))[::-1])
            elif layout == "strided":
                x = torch.randn((*shape, 2), dtype=torch.float64)[..., 0]
            else:
                x = torch.randn(shape, dtype=torch.float64)
            made.append(x.to(getattr(torch, dtype)).requires_grad_(grad))
        return made

    def run(self, backend: str | None) -> tuple:
        """What comes out: results, inputs, gradients, or the error."""
        inputs = self.make_inputs()
        space = names()
        body = "".join(f"    {line}\n" for line in self.lines) or "    pass\n"
        arguments = ", ".join(f"x{i}" for i in range(len(inputs)))
        seen = "locals()" if self.budget is None else "some(locals())"
        exec(f"def program({arguments}):\n{body}    return {seen}\n", space)
        program = space["program"]
        if backend is not None:
            options = None if self.budget is None else {"activation_memory_budget": self.budget}
            program = torch.compile(program, backend=backend, options=options)
        torch.manual_seed(self.seed + 1)
        try:
            found = program(*inputs)
        except Exception as error:
            return ("error", type(error).__name__, first_line(error), *map(frozen, inputs))
        results = [value for value in found.values() if isinstance(value, torch.Tensor)]
        return (*self.backward(results, inputs), *map(frozen, results), *map(frozen, inputs))

    def backward(self, results: list, inputs: list) -> tuple:
        """The gradients of the sum of what depends on inputs."""
        wanted = [value for value in inputs if value.requires_grad and value.is_leaf]
        try:
            roots = [value for value in results if value.requires_grad and value.grad_fn]
            if not roots or not wanted:
                return ()
            sums = [value.double().sum() for value in roots]
            if self.budget is not None:
                if self.seed % 3 == 0:
                    inputs[self.seed % len(inputs)].data.mul_(2)
                if self.seed % 4 == 0:
                    torch.autograd.backward(sums, retain_graph=True)
            torch.autograd.backward(sums)
        except (RuntimeError, IndexError) as error:
            return ("backward error", first_line(error))
        return tuple(frozen(value.grad) for value in wanted)

    def __str__(self) -> str:
        lines = [f"# seed {self.seed}"]
        lines += [f"# x{i}: {item}" for i, item in enumerate(self.inputs)]
        return "\n".join([*lines, *self.lines])


def some(variables: dict) -> dict:
    """Inputs, the last variable, and a third of the others."""
    last = max(
        (name for name in variables if name[0] == "v"), key=list(variables).index, default=""
    )
    return {
        name: value
        for name, value in variables.items()
        if name[0] != "v" or name == last or int(name[1:]) % 3 == 0
    }


def first_line(error: Exception) -> str:
    """An error's text, without what says where memory was."""
    return str(error).split("\n")[0][:60]


def names() -> dict:
    """What programs use."""
    import rushlight.nn.functional as functional

    return {"torch": torch, "F": functional, "IDX": torch.tensor([0, 0]), "some": some}


def frozen(value) -> tuple | None:
    """Everything about a tensor that a program can see."""
    if value is None:
        return None
    value = value.detach()
    plain = value.contiguous()
    if value.dtype is torch.bfloat16:
        plain = plain.float()
    array = plain.numpy()
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), np.array(np.nan, array.dtype), array)
    return str(value.dtype), tuple(value.shape), value.stride(), array.tobytes()


def generate(seed: int, length: int = 12, budget: float | None = None) -> Program:
    """A program of at most `length` lines that eager runs."""
    pick = random.Random(seed)
    inputs = []
    shape = tuple(pick.choice(SIZES) for _ in range(pick.choice((1, 2, 2, 2, 3))))
    if pick.random() < 0.05:
        shape = (*shape[:-1], pick.choice((257, 1000)))
    for _ in range(pick.choice((1, 2, 2, 3))):
        own = shape
        if pick.random() < 0.4:
            own = tuple(size if pick.random() < 0.7 else 1 for size in shape)
        layout = pick.choice(("plain", "plain", "plain", "transposed", "strided"))
        inputs.append((own, pick.choice(FLOATS), pick.random() < 0.6, layout))
    program = Program(seed, inputs, [], budget)
    space = names()
    space.update({f"x{i}": value for i, value in enumerate(program.make_inputs())})
    pool = [f"x{i}" for i in range(len(inputs))]
    torch.manual_seed(seed + 1)
    wanted = pick.randint(2, length)
    for _ in range(4 * length):
        if len(program.lines) == wanted:
            break
        line, name = random_line(pick, pool)
        if runs(line, space, name):
            program.lines.append(line)
            if name not in pool:
                pool.append(name)
            if pick.random() < 0.1 and len(pool) > 2:
                gone = pick.choice([v for v in pool if v[0] == "v" and v != name] or [None])
                if gone is not None:
                    pool.remove(gone)
                    program.lines.append(f"del {gone}")
                    del space[gone]
    return program


def random_line(pick: random.Random, pool: list[str]) -> tuple[str, str]:
    """One line, and the name that it defines."""
    kinds = pick.choices([kind for _, kind in KINDS], [weight for weight, _ in KINDS])[0]
    recent = pool[-4:] if pick.random() < 0.7 else pool
    text = pick.choice(kinds).format(
        a=pick.choice(recent),
        b=pick.choice(pool),
        s=pick.choice(("0.5", "2", "1.25", "-1.5", "0", "3")),
        d=pick.choice(("0", "-1", "1")),
        e=pick.choice(("0", "-1", "1")),
        i=pick.choice(("0", "-1")),
    )
    name = f"v{sum(1 for _ in pool) + pick.randint(0, 10**6)}"
    return f"{name} = {text}", name


def runs(line: str, space: dict, name: str) -> bool:
    """Whether eager takes the line, and what it gives is a tensor of sensible size."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(line, space)
    except Exception:
        space.pop(name, None)
        return False
    value = space[name]
    if value is None or not isinstance(value, torch.Tensor):
        space.pop(name, None)
        return False
    return value.numel() <= 20000


def differs(program: Program, backend: str) -> bool:
    """Whether compiling changes what comes out."""
    return program.run(None) != program.run(backend)


def cut_down(program: Program, backend: str) -> Program:
    """The program without the lines that do not matter."""
    at = len(program.lines) - 1
    while at >= 0:
        lines = program.lines[:at] + program.lines[at + 1 :]
        shorter = Program(program.seed, program.inputs, lines, program.budget)
        if differs(shorter, backend) and shorter.run(None)[:2] != ("error", "NameError"):
            program = shorter
        at -= 1
    return program


def main() -> int:
    """Runs programs as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--backend", default="inductor")
    parser.add_argument("--lines", type=int, default=12)
    parser.add_argument("--budget", type=float)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    failures = 0
    start = time.perf_counter()
    for seed in range(options.seed, options.seed + options.count):
        program = generate(seed, options.lines, options.budget)
        if differs(program, options.backend):
            failures += 1
            print(cut_down(program, options.backend), "\n", flush=True)
    seconds = time.perf_counter() - start
    print(f"{options.count} programs, {failures} differ, {seconds:.1f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
