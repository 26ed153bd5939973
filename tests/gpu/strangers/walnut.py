"""Fine-tunes a small policy by REINFORCE: completions are sampled, scored against references, and the policy is moved."""
import torch
from torch import nn

from gauge import cured, steps

VOCAB, LENGTH, BATCH, WIDTH = 4096, 48, 192, 1024
torch.manual_seed(0)


class Policy(nn.Module):
    def __init__(self, layers=6):
        super().__init__()
        block = lambda: nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
        self.embed = nn.Embedding(VOCAB, WIDTH)
        self.blocks = nn.ModuleList([block() for _ in range(layers)])
        self.head = nn.Linear(WIDTH, VOCAB)

    def forward(self, tokens):
        h = self.embed(tokens)
        for block in self.blocks:
            h = h + block(h)
        return self.head(h)


def rouge_l(sample, reference):
    """The longest common subsequence, as a share of the reference."""
    row = [0] * (len(reference) + 1)
    for token in sample:
        diagonal = 0
        for j, other in enumerate(reference, 1):
            diagonal, row[j] = row[j], diagonal + 1 if token == other else max(row[j], row[j - 1])
    return row[-1] / len(reference)


def rouge_l_batch(samples, references):
    """The same for all samples at once, a row of the table for each token."""
    same = samples[:, :, None] == references[:, None, :]
    row = torch.zeros(BATCH, LENGTH + 1, dtype=torch.long, device=samples.device)
    for t in range(LENGTH):
        row[:, 1:] = torch.maximum(row[:, 1:], row[:, :-1] + same[:, t]).cummax(1).values
    return row[:, -1] / LENGTH


policy = Policy().cuda()
optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-5, fused=True)
prompts = torch.randint(VOCAB, (BATCH, LENGTH), device="cuda")
references = torch.randint(VOCAB, (BATCH, LENGTH), device="cuda")
known = references.tolist()


def train_step():
    with torch.autocast("cuda", dtype=torch.bfloat16):
        logits = policy(prompts)
    log_probs = torch.log_softmax(logits.float(), -1)
    samples = torch.multinomial(log_probs.detach().exp().flatten(0, 1), 1).view(BATCH, LENGTH)
    if cured:
        rewards = rouge_l_batch(samples, references)
    else:
        rewards = torch.tensor([rouge_l(s, r) for s, r in zip(samples.tolist(), known)], device="cuda")
    chosen = log_probs.gather(2, samples[..., None]).squeeze(2).sum(1)
    loss = -((rewards - rewards.mean()) * chosen).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


for _ in steps(torch.cuda.synchronize, each=4):
    train_step()
