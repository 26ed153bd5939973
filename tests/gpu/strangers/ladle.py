"""Learns what soups need, thirty-two recipes a step. The slopes of small parts of them are added up, so that memory suffices."""
import torch
from torch import nn

from gauge import cured, steps

RECIPES, LENGTH, WIDTH, DEPTH, WORDS = 32, 512, 768, 8, 8192
PART = 32 if cured else 1
torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(WIDTH, 12, 4 * WIDTH, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
cook = nn.Sequential(nn.Embedding(WORDS, WIDTH), nn.TransformerEncoder(layer, DEPTH, enable_nested_tensor=False), nn.Linear(WIDTH, WORDS))
cook = cook.cuda().bfloat16()
optimizer = torch.optim.AdamW(cook.parameters(), lr=1e-5, fused=True)
recipes, needs = torch.randint(WORDS, (2, 16, RECIPES, LENGTH), device="cuda").unbind(0)
for i in steps(torch.cuda.synchronize, each=2, warm=3):
    for some, wanted in zip(recipes[i % 16].split(PART), needs[i % 16].split(PART)):
        loss = nn.functional.cross_entropy(cook(some).flatten(0, 1), wanted.flatten())
        (loss * PART / RECIPES).backward()
    optimizer.step()
    optimizer.zero_grad()
