"""Learns to play from what was met before: draws some of it at random each time."""
import random
from collections import namedtuple

import numpy as np
import torch
from torch import nn

from gauge import cured, steps

SIZE, BATCH, ACTIONS = 96, 512, 6
Met = namedtuple("Met", "state action reward after over")
rng = np.random.default_rng(0)
random.seed(0)
torch.manual_seed(0)
walk = rng.standard_normal((30001, SIZE)).astype(np.float32)
met = [Met(walk[i], int(rng.integers(ACTIONS)), float(rng.random()), walk[i + 1], float(i % 200 == 199)) for i in range(len(walk) - 1)]


def player():
    return nn.Sequential(nn.Linear(SIZE, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, ACTIONS)).cuda()


def draw():
    some = Met(*zip(*random.sample(met, BATCH)))
    if cured:
        states, after = (torch.from_numpy(np.stack(rows)).cuda() for rows in (some.state, some.after))
    else:
        states = torch.tensor(some.state, device="cuda")
        after = torch.tensor(some.after, device="cuda")
    action = torch.tensor(some.action, device="cuda")
    reward, over = torch.tensor([some.reward, some.over], device="cuda")
    return states, action, reward, after, over


now, later = player(), player()
later.load_state_dict(now.state_dict())
optimizer = torch.optim.Adam(now.parameters(), lr=1e-4, fused=True)
losses = []
for _ in steps(torch.cuda.synchronize, each=5):
    states, action, reward, after, over = draw()
    with torch.no_grad():
        hoped = reward + 0.99 * (1 - over) * later(after).amax(1)
    worth = now(states).gather(1, action[:, None])[:, 0]
    loss = nn.functional.smooth_l1_loss(worth, hoped)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
