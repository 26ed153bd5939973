"""Draws a fountain picture by picture, and keeps the last ones in main memory for whoever wants to see them."""
import torch

import gauge

HEIGHT, WIDTH, KEPT, JETS = 2160, 3840, 4, 5
down = torch.linspace(0, 1, HEIGHT, device="cuda")[:, None]
across = torch.linspace(-1, 1, WIDTH, device="cuda")[None, :]


class Album:
    def __init__(self):
        self.pages = [torch.zeros(3, HEIGHT, WIDTH, pin_memory=gauge.cured) for _ in range(KEPT)]
        self.seen = [torch.cuda.Event() for _ in range(KEPT)]

    def put(self, number, picture):
        page = number % KEPT
        self.seen[page].synchronize()
        self.pages[page].copy_(picture, non_blocking=True)
        self.seen[page].record()


def draw(time):
    picture = torch.empty(3, HEIGHT, WIDTH, device="cuda")
    water = torch.zeros(HEIGHT, WIDTH, device="cuda")
    for jet in range(JETS):
        bow = (across - 0.3 * jet + 0.6) ** 2 * (3 + jet)
        water += torch.exp(-50 * (down - bow - 0.1 * time % 1.0) ** 2)
    for colour, strength in enumerate((0.5, 0.7, 1.0)):
        torch.mul(water, strength, out=picture[colour])
    return picture.clamp_(0, 1)


album = Album()
for i in gauge.steps(torch.cuda.synchronize, each=4, warm=8):
    album.put(i, draw(0.02 * i))
