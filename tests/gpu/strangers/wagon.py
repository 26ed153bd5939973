"""Trains an encoder of pieces of text, and each tenth step sees how well it does on some it was not shown."""
import torch
from torch import nn

from gauge import steps

BATCH, LENGTH, WIDTH, DEPTH, WORDS, EVERY = 16, 1024, 1024, 8, 8192, 10
torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(WIDTH, 16, 4 * WIDTH, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
model = nn.Sequential(nn.Embedding(WORDS, WIDTH), nn.TransformerEncoder(layer, DEPTH, enable_nested_tensor=False), nn.Linear(WIDTH, WORDS)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
shown = torch.randint(0, WORDS, (32, BATCH, LENGTH), device="cuda")
unshown = torch.randint(0, WORDS, (6, BATCH, LENGTH), device="cuda")
scores = []


def loss_of(text):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        return nn.functional.cross_entropy(model(text).flatten(0, 1), text.flatten())


@torch.no_grad()
def score():
    scores.append(torch.stack([loss_of(text) for text in unshown]).mean())


for i in steps(torch.cuda.synchronize, each=EVERY):
    optimizer.zero_grad()
    loss_of(shown[i % len(shown)]).backward()
    optimizer.step()
    if i % EVERY == 0:
        score()
