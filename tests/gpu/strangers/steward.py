"""Serves the same course over and over: one captured graph of large products, launched well ahead."""
import torch
from torch import nn

from gauge import steps

torch.manual_seed(0)
net = nn.Sequential(*[part for _ in range(6) for part in (nn.Linear(4096, 4096), nn.GELU())]).cuda().bfloat16().eval()
dish = torch.randn(8192, 4096, device="cuda", dtype=torch.bfloat16)
with torch.no_grad():
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            net(dish)
    torch.cuda.synchronize()
    course = torch.cuda.CUDAGraph()
    with torch.cuda.graph(course):
        served = net(dish)
    for _ in steps(torch.cuda.synchronize, each=50):
        course.replay()
