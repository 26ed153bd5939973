"""Tells sixty-four stories at once, a word a step, and stops a story at one of its last words."""
import torch

from gauge import cured, steps

torch.manual_seed(0)
TELLERS, WIDTH = 64, 8192
words = [f"w{n:x}" for n in range(16384)]
stops = [f"{a} {b}" for a, b in zip(words[::200], words[7::200])]
stories = [[] for _ in range(TELLERS)]
table = torch.randn(len(words), WIDTH, device="cuda", dtype=torch.bfloat16) * 0.5
layers = [torch.randn(WIDTH, WIDTH, device="cuda", dtype=torch.bfloat16) / WIDTH**0.5 for _ in range(12)]
home = torch.empty(TELLERS, dtype=torch.long, pin_memory=True)
here = torch.cuda.Event()


def think(told):
    x = table[told]
    for layer in layers * 7:
        x = x @ layer
    return (x @ table.T).argmax(-1)


def tell(told):
    for story, word in zip(stories, told):
        story.append(words[word])
        tail = " ".join(story[-240:])
        if any(stop in tail for stop in stops) or len(story) > 2000:
            story.clear()


@torch.no_grad()
def word(told):
    if not cured:
        told = think(told)
        tell(told.tolist())
        return told
    home.copy_(told, non_blocking=True)
    here.record()
    told = think(told)
    here.synchronize()
    tell(home.tolist())
    return told


told = torch.arange(TELLERS, device="cuda")
for _ in steps(torch.cuda.synchronize, each=10):
    told = word(told)
