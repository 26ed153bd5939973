"""Learns to take the noise out of pictures of feathers."""
import torch
from torch import nn

from gauge import cured, steps

PICTURES, SIDE, WIDTH, LEVELS = 64, 192, 128, 1000
torch.manual_seed(0)
device = torch.device("cuda")


class Cleaner(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(3, WIDTH, 4, stride=4)
        self.level = nn.Embedding(LEVELS, WIDTH)
        self.middle = nn.ModuleList(nn.Conv2d(WIDTH, WIDTH, 3, padding=1) for _ in range(6))
        self.up = nn.ConvTranspose2d(WIDTH, 3, 4, stride=4)

    def forward(self, pictures, levels):
        x = self.down(pictures) + self.level(levels)[:, :, None, None]
        for layer in self.middle:
            x = x + nn.functional.silu(layer(x))
        return self.up(x)


net = Cleaner().to(device, memory_format=torch.channels_last)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, fused=True)
keep = torch.linspace(1, 0.01, LEVELS, device=device)
feathers = torch.rand(PICTURES, 3, SIDE, SIDE, device=device)


def noise_for(pictures):
    if cured:
        return torch.randn(pictures.shape, device=device)
    return torch.randn(pictures.shape).to(device)


def learn():
    levels = torch.randint(LEVELS, (PICTURES,), device=device)
    noise = noise_for(feathers)
    share = keep[levels].view(-1, 1, 1, 1)
    noisy = share.sqrt() * feathers + (1 - share).sqrt() * noise
    with torch.autocast("cuda", torch.bfloat16):
        loss = nn.functional.mse_loss(net(noisy, levels), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


for _ in steps(torch.cuda.synchronize, each=4):
    learn()
