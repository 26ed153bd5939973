"""Learns to tell sorts of grain by their spectra, an epoch after another."""
import numpy
import torch
from torch.utils.data import DataLoader, Dataset

import gauge


class Spectra(Dataset):
    def __init__(self, count, bins=2048, sorts=40):
        rng = numpy.random.default_rng(3)
        self.rows = rng.standard_normal((count, bins), dtype=numpy.float32)
        self.sorts = rng.integers(0, sorts, count)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        row = self.rows[i]
        return torch.from_numpy(row - row.mean()), int(self.sorts[i])


def epoch(loader, model, optimizer):
    total = torch.zeros((), device="cuda")
    for rows, sorts in loader:
        rows, sorts = rows.to("cuda", non_blocking=True), sorts.to("cuda", non_blocking=True)
        loss = torch.nn.functional.cross_entropy(model(rows), sorts)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
    return total.item() / len(loader)


def main():
    torch.set_float32_matmul_precision("high")
    loader = DataLoader(
        Spectra(3072),
        batch_size=256,
        shuffle=True,
        num_workers=2,
        pin_memory=True,
        persistent_workers=gauge.cured,
    )
    model = torch.nn.Sequential(
        torch.nn.Linear(2048, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 40)
    ).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    losses = []
    for _ in gauge.steps(torch.cuda.synchronize, warm=2, least=20):
        losses.append(epoch(loader, model, optimizer))


if __name__ == "__main__":
    main()
