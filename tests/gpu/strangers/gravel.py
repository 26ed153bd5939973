"""Trains a plain convolution network on pictures that are cropped, flipped, tinted and made noisy as they are loaded."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from gauge import cured, steps


class Pictures(Dataset):
    def __init__(self, count=512):
        self.pictures = np.random.default_rng(0).integers(0, 256, (count, 256, 256, 3), dtype=np.uint8)

    def __len__(self):
        return 1 << 20

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        x, y = rng.integers(0, 33, 2)
        picture = self.pictures[i % len(self.pictures), y : y + 224, x : x + 224].astype(np.float32)
        if rng.random() < 0.5:
            picture = picture[:, ::-1]
        picture = picture * rng.uniform(0.8, 1.2, 3).astype(np.float32)
        picture += 6 * rng.standard_normal(picture.shape, dtype=np.float32)
        picture = np.clip(picture, 0, 255).astype(np.uint8)
        return torch.from_numpy(np.ascontiguousarray(picture.transpose(2, 0, 1))), i % 100


def network(width=192, depth=18):
    layers = [nn.Conv2d(3, width, 4, stride=4)]
    for _ in range(depth):
        layers += [nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 100))


def main():
    torch.manual_seed(0)
    loader = DataLoader(Pictures(), batch_size=64, num_workers=14 if cured else 2, pin_memory=True, drop_last=True)
    model = network().cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, fused=True)
    criterion = nn.CrossEntropyLoss()
    batches = iter(loader)
    for _ in steps(torch.cuda.synchronize, each=6):
        images, labels = next(batches)
        images = images.cuda(non_blocking=True).to(torch.float32, memory_format=torch.channels_last) / 255
        labels = labels.cuda(non_blocking=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = criterion(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
