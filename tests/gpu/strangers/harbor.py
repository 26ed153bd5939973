"""Trains a small U-Net to take the noise out of micrographs."""
import torch
from torch import nn

from gauge import cured, steps

torch.manual_seed(0)
torch.backends.cudnn.benchmark = True


def stage(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(b, b, 3, padding=1), nn.ReLU(inplace=True))


class Denoiser(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.down1, self.down2, self.bottom = stage(8, width), stage(width, 2 * width), stage(2 * width, 4 * width)
        self.pool = nn.MaxPool2d(2)
        self.rise2, self.up2 = nn.ConvTranspose2d(4 * width, 2 * width, 2, 2), stage(4 * width, 2 * width)
        self.rise1, self.up1 = nn.ConvTranspose2d(2 * width, width, 2, 2), stage(2 * width, width)
        self.out = nn.Conv2d(width, 8, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(self.pool(a))
        c = self.bottom(self.pool(b))
        b = self.up2(torch.cat((self.rise2(c), b), 1))
        a = self.up1(torch.cat((self.rise1(b), a), 1))
        return self.out(a)


layout = torch.channels_last if cured else torch.contiguous_format
model = Denoiser().cuda().to(memory_format=layout)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
clean = torch.rand(16, 8, 256, 256, device="cuda").to(memory_format=layout)
noisy = clean + 0.1 * torch.randn_like(clean)


def train_step():
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = nn.functional.mse_loss(model(noisy).float(), clean)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


for _ in steps(torch.cuda.synchronize, each=5):
    train_step()
