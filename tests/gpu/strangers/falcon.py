"""Learns to tell birds apart, from few pictures and in many short epochs."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from gauge import cured, steps

KINDS, BATCH, BATCHES, SIDE = 20, 64, 12, 96


class Birds(Dataset):
    def __init__(self):
        rng = np.random.default_rng(0)
        self.pictures = rng.integers(0, 256, (BATCH * BATCHES, 3, SIDE, SIDE), np.uint8)
        self.kinds = rng.integers(0, KINDS, BATCH * BATCHES)

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, i):
        return torch.from_numpy(self.pictures[i].astype(np.float32) / 255), self.kinds[i]


def block(a, b):
    return [nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.Conv2d(b, b, 3, 2, 1), nn.BatchNorm2d(b), nn.ReLU()]


def main():
    torch.manual_seed(0)
    model = nn.Sequential(*block(3, 64), *block(64, 128), *block(128, 256), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, KINDS)).cuda()
    model = model.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, fused=True)
    loader = DataLoader(Birds(), BATCH, shuffle=True, num_workers=6, pin_memory=True, persistent_workers=cured)
    for _ in steps(torch.cuda.synchronize, warm=1):
        total = torch.zeros((), device="cuda")
        for pictures, kinds in loader:
            pictures = pictures.cuda(non_blocking=True).to(memory_format=torch.channels_last)
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = nn.functional.cross_entropy(model(pictures), kinds.cuda(non_blocking=True))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        total.item()


if __name__ == "__main__":
    main()
