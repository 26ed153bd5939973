"""Learns to tell birds by their whistles: a piece of a song is cut out, and its spectrum taken band by band."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from gauge import cured, steps

SONGS, LENGTH, PIECE, WINDOW, HOP, BIRDS = 256, 160_000, 65_536, 512, 128, 50
TAPER = np.hanning(WINDOW).astype(np.float32)
EDGES = np.unique(np.geomspace(1, 250, 80).astype(int))


class Songs(Dataset):
    def __init__(self):
        self.songs = np.random.default_rng(0).standard_normal((SONGS, LENGTH), dtype=np.float32)

    def __len__(self):
        return 1 << 17

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        begin = rng.integers(0, LENGTH - PIECE)
        piece = self.songs[i % SONGS, begin : begin + PIECE]
        frames = np.lib.stride_tricks.sliding_window_view(piece, WINDOW)[::HOP] * TAPER
        power = np.abs(np.fft.rfft(frames, axis=1)) ** 2
        bands = np.log1p(np.add.reduceat(power, EDGES, axis=1))
        return torch.from_numpy(bands.T.astype(np.float32)), i % BIRDS


def convolution(a, b):
    return nn.Sequential(nn.Conv1d(a, b, 5, padding=2), nn.BatchNorm1d(b), nn.ReLU())


if __name__ == "__main__":
    torch.manual_seed(0)
    more = {"num_workers": 12} if cured else {}
    loader = DataLoader(Songs(), batch_size=32, shuffle=True, drop_last=True, **more)
    body = [convolution(len(EDGES), 512), *[convolution(512, 512) for _ in range(6)]]
    net = nn.Sequential(*body, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(512, BIRDS)).cuda()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    batches = iter(loader)
    for _ in steps(torch.cuda.synchronize, each=6, warm=12 if cured else 4):
        songs, birds = next(batches)
        songs, birds = songs.cuda(), birds.cuda()
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(songs), birds)
        loss.backward()
        optimizer.step()
