"""Learns trees by pictures that are turned, cut and brightened at random."""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

from gauge import steps

TREES, SIDE, CUT, PATCH, WIDTH, DEPTH, KINDS = 64, 256, 224, 16, 1024, 12, 100


class Pictures(Dataset):
    """Each is a batch of changed pictures and their kinds."""

    def __len__(self):
        return 1_000_000

    def __getitem__(self, which):
        rng = np.random.default_rng(which)
        pictures = rng.integers(0, 256, (TREES, 3, SIDE, SIDE), dtype=np.uint8)
        changed = np.empty((TREES, 3, CUT, CUT), np.uint8)
        for to, picture in zip(changed, pictures):
            top, left = rng.integers(0, SIDE - CUT, 2)
            cut = picture[:, top : top + CUT, left : left + CUT][:, :, :: rng.choice([-1, 1])]
            to[:] = np.clip(cut * np.float32(rng.uniform(0.7, 1.3)), 0, 255)
        return torch.from_numpy(changed), torch.from_numpy(rng.integers(0, KINDS, TREES))


class Forester(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(WIDTH, 16, 4 * WIDTH, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.patches = nn.Linear(3 * PATCH * PATCH, WIDTH)
        self.body = nn.TransformerEncoder(layer, DEPTH, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, KINDS)

    def forward(self, pictures):
        n = CUT // PATCH
        tiles = pictures.view(TREES, 3, n, PATCH, n, PATCH).permute(0, 2, 4, 1, 3, 5).reshape(TREES, n * n, -1)
        return self.head(self.body(self.patches(tiles.bfloat16() / 255)).mean(1))


def main():
    loader = iter(DataLoader(Pictures(), batch_size=None, num_workers=8, prefetch_factor=4, pin_memory=True))
    first = next(loader)
    torch.manual_seed(0)
    with torch.device("cuda"):
        forester = Forester().bfloat16()
    optimizer = torch.optim.AdamW(forester.parameters(), lr=1e-5, fused=True)
    for i in steps(torch.cuda.synchronize, each=4):
        pictures, kinds = (part.cuda(non_blocking=True) for part in (first if i == 0 else next(loader)))
        loss = F.cross_entropy(forester(pictures), kinds)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
