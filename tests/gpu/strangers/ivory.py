"""Carves pictures out of noise and hands them on as bytes."""
import numpy as np
import torch
from torch import nn

from gauge import cured, steps

PICTURES, SIDE = 32, 512


def larger(a, b):
    return nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(a, b, 3, padding=1), nn.SiLU(), nn.Conv2d(b, b, 3, padding=1), nn.SiLU())


torch.manual_seed(0)
torch.set_grad_enabled(False)
carver = nn.Sequential(larger(128, 96), larger(96, 64), larger(64, 32), nn.Conv2d(32, 3, 3, padding=1), nn.Tanh())
carver = carver.to("cuda", torch.bfloat16, memory_format=torch.channels_last)
noise = torch.randn(8, PICTURES, 128, SIDE // 8, SIDE // 8, device="cuda", dtype=torch.bfloat16)
shelf = {}


def as_bytes(pictures):
    if cured:
        pictures = ((pictures + 1) * 127.5).clamp(0, 255).to(torch.uint8)
        return pictures.permute(0, 2, 3, 1).contiguous().cpu().numpy()
    pictures = pictures.cpu().numpy()
    pictures = np.clip((pictures + 1) * 127.5, 0, 255).astype(np.uint8)
    return np.ascontiguousarray(pictures.transpose(0, 2, 3, 1))


for i in steps(torch.cuda.synchronize, warm=3):
    rough = noise[i % len(noise)].contiguous(memory_format=torch.channels_last)
    shelf[i % 2] = as_bytes(carver(rough).float())
