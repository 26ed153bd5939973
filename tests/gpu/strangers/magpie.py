"""Trains an encoder, and keeps a book of how large the gradient of each of its parameters was."""
from collections import defaultdict

import torch
from torch import nn

from gauge import cured, steps

BATCH, LENGTH, WIDTH, DEPTH, WORDS = 48, 256, 512, 12, 8192
torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
model = nn.Sequential(nn.Embedding(WORDS, WIDTH), nn.TransformerEncoder(layer, DEPTH, enable_nested_tensor=False), nn.Linear(WIDTH, WORDS)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
names, parameters = zip(*model.named_parameters())
texts = torch.randint(0, WORDS, (64, BATCH, LENGTH), device="cuda")
book, sheaf = defaultdict(list), []


def note(loss):
    gradients = [p.grad for p in parameters]
    if cured:
        sheaf.append(torch.stack([loss.detach(), *torch._foreach_norm(gradients)]))
        if len(sheaf) == 50:
            for row in torch.stack(sheaf).tolist():
                for name, value in zip(("loss", *names), row):
                    book[name].append(value)
            sheaf.clear()
        return
    book["loss"].append(loss.item())
    for name, gradient in zip(names, gradients):
        book[name].append(gradient.norm().item())


for i in steps(torch.cuda.synchronize, each=5):
    text = texts[i % len(texts)]
    with torch.autocast("cuda", dtype=torch.bfloat16):
        guess = model(text)
        loss = nn.functional.cross_entropy(guess.flatten(0, 1), text.roll(-1, 1).flatten())
    optimizer.zero_grad()
    loss.backward()
    note(loss)
    optimizer.step()
