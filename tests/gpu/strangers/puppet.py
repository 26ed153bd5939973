"""Teaches a thousand puppets to dance: sixteen moves each are watched, and then learned from."""
import torch
from torch import nn

from gauge import cured, steps

PUPPETS, MOVES, SIDE, KINDS, PARTS = 1024, 16, 64, 6, 4
torch.manual_seed(0)
kept_on = "cuda" if cured else "cpu"
seen = torch.empty(MOVES, PUPPETS, 4, SIDE, SIDE, dtype=torch.uint8, device=kept_on)
done = torch.empty(MOVES, PUPPETS, dtype=torch.long, device=kept_on)
won = torch.empty(MOVES, PUPPETS, device=kept_on)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(4 * SIDE * SIDE, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, KINDS))

    def forward(self, pictures):
        return self.body(pictures.bfloat16() / 255).float()


with torch.device("cuda"):
    policy = Policy().bfloat16()
    poses = torch.randint(256, (KINDS, SIDE, SIDE), dtype=torch.uint8)
    stage = torch.randint(256, (PUPPETS, 4, SIDE, SIDE), dtype=torch.uint8)
optimizer = torch.optim.SGD(policy.parameters(), lr=1e-5, fused=True)


def dance(stage, moves):
    """The last four pictures of each puppet, and how well it danced."""
    fresh = poses[moves] + stage[:, -1] // 2
    return torch.cat([stage[:, 1:], fresh[:, None]], 1), (moves % 2).float()


@torch.no_grad()
def watch(stage):
    for t in range(MOVES):
        moves = torch.multinomial(policy(stage).softmax(-1), 1)[:, 0]
        seen[t], done[t] = stage, moves
        stage, won[t] = dance(stage, moves)
    return stage


def learn():
    worth = won.flip(0).cumsum(0).flip(0)
    for t in range(0, MOVES, MOVES // PARTS):
        part = slice(t, t + MOVES // PARTS)
        pictures, moves, gain = seen[part].cuda().flatten(0, 1), done[part].cuda().flatten(), worth[part].cuda().flatten()
        loss = (nn.functional.cross_entropy(policy(pictures), moves, reduction="none") * (gain - gain.mean())).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


for _ in steps(torch.cuda.synchronize, each=2, warm=3):
    stage = watch(stage)
    learn()
