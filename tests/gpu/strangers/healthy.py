"""Trains a convolution network as one should: workers, pinned memory, copies that nothing waits for.

truth
needs: torch
bound_by: compute
steps: 1
must:
may: memory-chain latency-bound tail-wave idle-tensor-cores
never: sync-in-loop pageable-copy host-bound launch-bound no-overlap alloc-in-loop tiny-copies low-bandwidth copy-bound no-cure
why: The GPU computes for over 10 ms a step; loading, pinning and copying are done meanwhile, and no value is read.
"""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from stamp import loop


class Images(Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, i):
        return torch.full((3, 128, 128), i % 7 / 7), i % 10


def main():
    torch.manual_seed(0)
    part = lambda a, b: (nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU())
    net = nn.Sequential(*part(3, 128), *part(128, 128), *part(128, 128), *part(128, 128), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10))
    net = net.cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, fused=True)
    batches = iter(DataLoader(Images(), batch_size=64, num_workers=6, pin_memory=True, prefetch_factor=4))

    def step():
        images, labels = next(batches)
        images = images.to("cuda", non_blocking=True).contiguous(memory_format=torch.channels_last)
        labels = labels.to("cuda", non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            out = net(images)
        nn.functional.cross_entropy(out.float(), labels).backward()
        optimizer.step()

    for _ in range(5):
        step()
    torch.cuda.synchronize()
    for _ in loop(150, torch.cuda.synchronize, by="mean", warm=5):
        step()


if __name__ == "__main__":
    main()
