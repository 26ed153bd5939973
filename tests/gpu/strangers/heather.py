"""Answers eight callers in batches: takes the questions that come within a window, and asks the net for all at once."""
import queue
import threading
import time

import torch
from torch import nn

from gauge import cured, steps

CALLERS, MOST, WIDTH, DEPTH = 8, 32, 2048, 32
WINDOW = 0.0005 if cured else 0.02
torch.manual_seed(0)
inbox, over = queue.Queue(), threading.Event()


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.widen, self.narrow = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.narrow(nn.functional.silu(self.widen(self.norm(x))))


def caller():
    """Asks, waits for the answer, and asks again."""
    question, replies = torch.randn(WIDTH).bfloat16(), queue.Queue()
    while not over.is_set():
        inbox.put((question, replies))
        replies.get()


def gather():
    """What is asked from the first question on until the window closes or the batch is full."""
    batch = [inbox.get()]
    closes = time.monotonic() + WINDOW
    while len(batch) < MOST:
        try:
            batch.append(inbox.get(timeout=max(0.0, closes - time.monotonic())))
        except queue.Empty:
            break
    return batch


def serve():
    batch = gather()
    questions = torch.stack([question for question, _ in batch]).cuda()
    answers = net(questions).float().cpu()
    for answer, (_, replies) in zip(answers, batch):
        replies.put(answer)


with torch.device("cuda"):
    net = nn.Sequential(*[Layer() for _ in range(DEPTH)]).bfloat16().eval()
threads = [threading.Thread(target=caller, name=f"caller-{n}", daemon=True) for n in range(CALLERS)]
for thread in threads:
    thread.start()
with torch.inference_mode():
    for _ in steps(torch.cuda.synchronize):
        serve()
over.set()
while any(thread.is_alive() for thread in threads):
    try:
        inbox.get(timeout=0.01)[1].put(None)
    except queue.Empty:
        pass
