"""Loads its batches by four workers, which are still too slow.

truth
needs: torch numpy
bound_by: host
steps: count
must: host-bound no-cure next-batch
may: pageable-copy no-cpu
never: launch-bound sync-in-loop alloc-in-loop tiny-copies no-overlap under-filled-gpu failed-calls
why: Four workers together make a batch in several times what the GPU takes for it, so the GPU waits for them.
"""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from stamp import loop


class Scans(Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, i):
        scan = np.random.default_rng(i).standard_normal((3, 96, 96), dtype=np.float32)
        for _ in range(10):
            scan = np.sort(scan[:, ::-1] * 0.5 + scan.mean(), axis=i % 2 + 1)
        return torch.from_numpy(np.ascontiguousarray(scan)), i % 10


def main():
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(3, 64, 3), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)
    ).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    batches = iter(DataLoader(Scans(), batch_size=32, num_workers=4))

    def step():
        images, labels = next(batches)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(images.cuda()), labels.cuda())
        loss.backward()
        optimizer.step()
        return loss.item()

    for _ in range(2):
        step()
    for _ in loop(100, torch.cuda.synchronize, warm=2):
        step()


if __name__ == "__main__":
    main()
