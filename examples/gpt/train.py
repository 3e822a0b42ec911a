"""Trains a small GPT on the King James Bible, character by character, and lets it write.

An ordinary PyTorch program but for the name in its imports. `--help` lists its settings; the
folder --out receives losses.csv, losses.png and the checkpoint gpt.pt.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import pathlib
import time

import model
import plot
import progress
import rushlight as torch
import text

VALIDATION_WINDOWS = 256  # while training
FINAL_WINDOWS = 4096
VALIDATION_BATCH = 64


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Trains a GPT on text, character by character.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--context", type=int, default=64, help="characters seen at once")
    parser.add_argument("--batch", type=int, default=12, help="sequences a step")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--lr", type=float, default=2e-3, help="the highest learning rate")
    parser.add_argument("--warmup", type=int, default=100, help="steps to reach it")
    parser.add_argument("--weight-decay", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=1337)
    parser.add_argument("--text", help="a file to learn instead of the Bible")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/gpt"))
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint in --out")
    parser.add_argument("--stop", type=int, help="leave after this step, with a checkpoint")
    parser.add_argument("--evaluate-every", type=int, default=500, help="steps; 0: never")
    parser.add_argument("--compile", action="store_true", help="compile the training step")
    parser.add_argument("--print-losses", action="store_true", help="print every step's loss")
    parser.add_argument("--sample", type=int, default=400, help="characters written at the end")
    parser.add_argument("--temperature", type=float, default=0.8)
    return parser.parse_args()


def learning_rate(step: int, options: argparse.Namespace) -> float:
    """Rises in a line over the warm-up, then falls along a cosine to a tenth."""
    if step < options.warmup:
        return options.lr * (step + 1) / options.warmup
    part = (step - options.warmup) / max(1, options.steps - options.warmup)
    return options.lr * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * part)))


def optimizer_of(gpt: model.GPT, options: argparse.Namespace) -> torch.optim.Optimizer:
    """Matrices decay towards zero; gains and offsets of normalisations do not."""
    matrices = [p for p in gpt.parameters() if p.dim() > 1]
    vectors = [p for p in gpt.parameters() if p.dim() <= 1]
    groups = [
        {"params": matrices, "weight_decay": options.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=options.lr, betas=(0.9, 0.99))


@torch.no_grad()
def validation_loss(gpt: model.GPT, held_out: torch.Tensor, windows: int) -> float:
    """Mean loss over windows spread evenly over the held-out text: the same ones every time."""
    context = gpt.shape.context
    last = held_out.shape[0] - context - 1
    total = 0.0
    for first in range(0, windows, VALIDATION_BATCH):
        places = [i * last // windows for i in range(first, first + VALIDATION_BATCH)]
        x, y = text.batch(held_out, torch.tensor(places), context)
        total += gpt.loss(x, y).item()
    return total / (windows // VALIDATION_BATCH)


def save(path: pathlib.Path, state: dict) -> None:
    """Writes beside the old checkpoint first, so that a full disk leaves the old one whole."""
    fresh = path.with_suffix(".new")
    torch.save(state, fresh)
    os.replace(fresh, path)


def save_losses(folder: pathlib.Path, losses: list, held_out_losses: list) -> None:
    with open(folder / "losses.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["step", "split", "loss"])
        writer.writerows((step, "train", f"{loss:.9g}") for step, loss in losses)
        writer.writerows((step, "held out", f"{loss:.9g}") for step, loss in held_out_losses)
    blue, orange = (31, 119, 180), (255, 127, 14)
    plot.save(folder / "losses.png", [(plot.smooth(losses), blue), (held_out_losses, orange)])


def training_step(gpt: model.GPT, optimizer: torch.optim.Optimizer):
    """What learns from one batch, and gives its loss."""

    def train(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        loss = gpt.loss(x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return train


def main() -> None:
    options = arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    checkpoint = options.out / "gpt.pt"
    if options.resume and not checkpoint.exists():
        raise SystemExit(f"--resume: there is no checkpoint {checkpoint}")
    data = text.read(options.text)
    if data.held_out.shape[0] < options.context + 2:
        raise SystemExit(f"the text is too short for a --context of {options.context}")
    torch.manual_seed(options.seed)
    shape = model.Shape(
        len(data.alphabet), options.context, options.layers, options.width, options.heads
    )
    gpt = model.GPT(shape)
    optimizer = optimizer_of(gpt, options)
    train = training_step(gpt, optimizer)
    if options.compile:
        train = torch.compile(train)
    losses: list[tuple[int, float]] = []
    held_out_losses: list[tuple[int, float]] = []
    first = 0
    if options.resume:
        state = torch.load(checkpoint)
        gpt.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["random"])
        losses, held_out_losses, first = state["losses"], state["held_out_losses"], state["step"]
    count = sum(p.numel() for p in gpt.parameters())
    print(
        f"{count:,} parameters; {data.train.shape[0]:,} characters to learn from,"
        f" {data.held_out.shape[0]:,} held out; {torch.get_num_threads()} threads"
    )

    last = min(options.stop or options.steps, options.steps)
    bar = progress.Progress(first, last, options.batch * options.context)
    began = time.perf_counter()
    for step in range(first, last):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, options)
        starts = torch.randint(data.train.shape[0] - options.context, (options.batch,))
        x, y = text.batch(data.train, starts, options.context)
        loss = train(x, y)
        losses.append((step, loss.item()))
        if options.print_losses:
            print(f"step {step}: loss {losses[-1][1]:.9g}")
        bar.show(step + 1, losses[-1][1])
        if options.evaluate_every and (step + 1) % options.evaluate_every == 0:
            held_out_losses.append(
                (step + 1, validation_loss(gpt, data.held_out, VALIDATION_WINDOWS))
            )
            bar.clear()
            print(f"step {step + 1}: validation loss {held_out_losses[-1][1]:.9g}", flush=True)
    bar.clear()
    took = time.perf_counter() - began

    save_losses(options.out, losses, held_out_losses)
    state = {
        "model": gpt.state_dict(),
        "optimizer": optimizer.state_dict(),
        "random": torch.get_rng_state(),
        "losses": losses,
        "held_out_losses": held_out_losses,
        "step": last,
    }
    save(checkpoint, state)
    print(f"{last - first} steps in {took:.1f} s; checkpoint and loss curve in {options.out}")
    if last == options.steps and options.evaluate_every:
        final = validation_loss(gpt, data.held_out, FINAL_WINDOWS)
        print(f"validation loss {final:.9g} nats a character")
    if last == options.steps and options.sample:
        generator = torch.Generator().manual_seed(options.seed)
        written = gpt.sample([0], options.sample, options.temperature, generator)
        print(data.decode(written).strip())


if __name__ == "__main__":
    main()
