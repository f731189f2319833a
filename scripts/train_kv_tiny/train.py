# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""Trains kv-tiny and writes checkpoints, from which it continues when it is started again:

    train.py --work FOLDER [--steps N]

Two processes with one thread each take one half of every batch: on a shared machine they wait for
each other once a step, threads at every product. The result depends on the seed, the version of
PyTorch and the instruction set, not on the load.
"""

import argparse
import ctypes
import json
import math
import pathlib
import resource
import signal
import sys
import time

import torch
import torch.distributed as distributed
from evaluate import exact_rate
from make_tokenizer import END_ID, joined, make_tokenizer
from network import Decoder
from problems import SEED, make_problem
from tokenizers import Tokenizer
from torch.nn import functional

WORKERS = 2
BATCH = 8  # problems of one worker in one step
CHUNK = 128  # steps whose problems are sorted by length together
PEAK_RATE = 2.5e-3
LAST_RATE = 0.02  # of the peak
WARM_UP = 200
# Weights of tokens in the loss. What a question says cannot be foreseen; results must be learned.
QUESTION_WEIGHT = 0.1
RESULT_WEIGHT = 3.0
LOG_EVERY = 100


def keep_memory():
    """Tells the allocator of glibc to keep freed memory: asking the system anew for every large
    tensor took two thirds of the time. Elsewhere nothing happens."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        trim_threshold, mmap_threshold = -1, -3  # malloc.h
        mallopt(mmap_threshold, 1 << 25)
        mallopt(trim_threshold, 1 << 30)


def parse_options():
    parser = argparse.ArgumentParser(description="Trains kv-tiny.")
    parser.add_argument("--work", type=pathlib.Path, required=True, help="folder of checkpoints")
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--save-minutes", type=float, default=3)
    parser.add_argument("--evaluate-every", type=int, default=2000)
    return parser.parse_args()


def results_of(row: list[int], first: int, equals: int, digits: set[int]) -> list[int]:
    """Where the next token is a digit of an equation's result, from place `first` on."""
    places, inside = [], False
    for place in range(first, len(row) - 1):
        inside = row[place] == equals or (inside and row[place] in digits)
        if inside and row[place + 1] in digits:
            places.append(place)
    return places


def make_batches(tokenizer, chunk: int, worker: int):
    """The batches of one chunk: ids [BATCH][longest + 1] and the weight of each prediction. Sorted
    by length within the chunk, so that little is padded, then shuffled."""
    count = CHUNK * BATCH * WORKERS
    problems = [make_problem("training", chunk * count + i) for i in range(count)]
    texts = tokenizer.encode_batch([joined(problem) for problem in problems])
    questions = tokenizer.encode_batch([problem["question"] for problem in problems])
    equals = tokenizer.token_to_id("\u0120=")
    digits = {number for token, number in tokenizer.get_vocab().items() if token[-1].isdigit()}
    rows = sorted(((text.ids, len(question.ids)) for text, question in zip(texts, questions)),
                  key=lambda row: len(row[0]))
    order = torch.randperm(CHUNK, generator=torch.Generator().manual_seed(SEED + chunk)).tolist()
    for index in order:
        # Neighbours in length go to different workers, which so have the same work.
        part = rows[index * BATCH * WORKERS : (index + 1) * BATCH * WORKERS][worker::WORKERS]
        width = -(-(len(part[-1][0]) + 1) // 8) * 8
        ids = torch.full((BATCH, width), END_ID)
        weights = torch.zeros(BATCH, width - 1)
        for place, (row, question) in enumerate(part):
            ids[place, : len(row)] = torch.tensor(row)
            weights[place, : question - 1] = QUESTION_WEIGHT
            weights[place, question - 1 : len(row)] = 1  # the answer and the token that ends it
            weights[place, results_of(row, question, equals, digits)] = RESULT_WEIGHT
        yield ids, weights


def loss_of(model, ids, weights):
    """The weighted mean, and the mean over answers alone."""
    keep = weights.flatten() > 0
    hidden = model.hidden(ids[:, :-1]).flatten(0, 1)[keep]
    logits = functional.linear(hidden, model.embed_tokens.weight).float()
    each = functional.cross_entropy(logits, ids[:, 1:].flatten()[keep], reduction="none")
    weight = weights.flatten()[keep]
    answers = (weight >= 1).float()
    return ((each * weight).sum() / weight.sum(),
            ((each.detach() * answers).sum() / answers.sum()).item())


def learning_rate(step: int, steps: int) -> float:
    if step < WARM_UP:
        return PEAK_RATE * (step + 1) / WARM_UP
    done = (step - WARM_UP) / max(1, steps - WARM_UP)
    return PEAK_RATE * (LAST_RATE + (1 - LAST_RATE) * 0.5 * (1 + math.cos(math.pi * done)))


def make_optimizer(model):
    matrices = [p for p in model.parameters() if p.dim() == 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": 0.05}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=PEAK_RATE, betas=(0.9, 0.98), fused=True)


def average_gradients(model):
    gradients = [p.grad for p in model.parameters()]
    together = torch.cat([gradient.flatten() for gradient in gradients])
    distributed.all_reduce(together)
    together /= WORKERS
    parts = together.split([gradient.numel() for gradient in gradients])
    for gradient, part in zip(gradients, parts):
        gradient.copy_(part.view_as(gradient))


class Clock:
    """Wall and processor seconds of all runs so far; the processor's of this worker."""

    def __init__(self, before: dict[str, float]):
        self.before = before
        self.started = time.monotonic()

    def read(self) -> dict[str, float]:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return {"wall": round(self.before["wall"] + time.monotonic() - self.started, 1),
                "cpu": round(self.before["cpu"] + usage.ru_utime + usage.ru_stime, 1)}


class Training:
    def __init__(self, options, worker: int):
        self.options, self.worker = options, worker
        self.path = options.work / "checkpoint.pt"
        saved = options.work / "tokenizer.json"
        self.tokenizer = Tokenizer.from_file(str(saved)) if saved.exists() else make_tokenizer()
        self.model = Decoder()
        self.model.initialise(SEED)
        self.optimizer = make_optimizer(self.model)
        self.step, self.log, self.losses = 0, [], []
        self.clock = Clock({"wall": 0, "cpu": 0})
        if self.path.exists():
            self.load()

    def load(self):
        state = torch.load(self.path)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step, self.log = state["step"], state["log"]
        self.clock = Clock(state["clock"])

    def save(self):
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(),
                 "step": self.step, "clock": self.clock.read(), "log": self.log}
        part = self.path.with_suffix(".part")
        torch.save(state, part)
        part.replace(self.path)

    def take_step(self, ids, weights):
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.step, self.options.steps)
        loss, answer_loss = loss_of(self.model, ids, weights)
        loss.backward()
        average_gradients(self.model)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.step += 1
        self.losses.append(answer_loss)

    def report(self):
        """Of the first worker: loss since the last report, and now and then the exact answers."""
        mean = sum(self.losses) / len(self.losses)
        self.losses = []
        self.log.append({"step": self.step, "loss": round(mean, 4)} | self.clock.read())
        if self.step % self.options.evaluate_every == 0 or self.step == self.options.steps:
            self.log[-1]["exact"] = exact_rate(self.model, self.tokenizer, 300)
        print(json.dumps(self.log[-1]), flush=True)

    def run(self):
        saved = time.monotonic()
        while self.step < self.options.steps:
            batches = make_batches(self.tokenizer, self.step // CHUNK, self.worker)
            for index, (ids, weights) in enumerate(batches):
                if index != self.step % CHUNK or self.step == self.options.steps:
                    continue  # done before the checkpoint, or beyond the end
                self.take_step(ids, weights)
                if self.worker != 0:
                    continue
                if self.step % LOG_EVERY == 0 or self.step == self.options.steps:
                    self.report()
                if time.monotonic() - saved > 60 * self.options.save_minutes:
                    self.save()
                    saved = time.monotonic()
        if self.worker == 0:
            self.save()


def work(worker: int, options):
    keep_memory()
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"file://{(options.work / 'meeting').resolve()}", rank=worker,
        world_size=WORKERS)
    training = Training(options, worker)
    distributed.barrier()
    if worker == 0:
        training.tokenizer.save(str(options.work / "tokenizer.json"))
        count = sum(parameter.numel() for parameter in training.model.parameters())
        print(f"{count} parameters, from step {training.step}", flush=True)
    training.run()
    distributed.destroy_process_group()


def main():
    options = parse_options()
    options.work.mkdir(parents=True, exist_ok=True)
    (options.work / "meeting").unlink(missing_ok=True)
    # A program that is told to end takes its workers along.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    torch.multiprocessing.spawn(work, (options,), nprocs=WORKERS, daemon=True)


if __name__ == "__main__":
    main()
