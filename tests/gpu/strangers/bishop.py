"""Answers as the questions come: a word a step for all who are being answered, and a new question whole."""
import torch

from gauge import cured, steps

torch.manual_seed(0)
layers = [torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) / 8192**0.5 for _ in range(16)]
answers = torch.randn(32, 8192, device="cuda", dtype=torch.bfloat16)
question = torch.randn(16384, 8192, device="cuda", dtype=torch.bfloat16)
EACH = 40


@torch.no_grad()
def through(x):
    for layer in layers:
        x = torch.tanh(x @ layer)
    return x


def answer(i):
    words = through(answers)
    if cured:
        through(question[: 16384 // EACH])
    elif i % EACH == 7:
        through(question)
    return words[:, 0].float().sum().item()


for i in steps(torch.cuda.synchronize):
    answer(i)
