"""Learns to tell from a ship's log, of any length, what it will catch."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from gauge import cured, steps

TOGETHER, LONGEST, WORDS, WIDTH, DEPTH, KINDS = 256, 128, 20000, 512, 4, 20


class Logs(Dataset):
    def __init__(self, count=4096):
        rng = np.random.default_rng(0)
        self.logs = [rng.integers(1, WORDS, rng.integers(64, LONGEST + 1)) for _ in range(count)]

    def __len__(self):
        return 1 << 20

    def __getitem__(self, which):
        log = self.logs[which % len(self.logs)]
        return log, int(log[0]) % KINDS


def pad_each(logs):
    words, there = torch.zeros(len(logs), LONGEST, dtype=torch.long), torch.zeros(len(logs), LONGEST)
    for i, (log, _) in enumerate(logs):
        for j, word in enumerate(log):
            words[i, j] = int(word)
            there[i, j] = 1.0
    return words, there, torch.tensor([kind for _, kind in logs])


def pad_rows(logs):
    words, there = torch.zeros(len(logs), LONGEST, dtype=torch.long), torch.zeros(len(logs), LONGEST)
    for i, (log, _) in enumerate(logs):
        words[i, : len(log)] = torch.from_numpy(log)
        there[i, : len(log)] = 1.0
    return words, there, torch.tensor([kind for _, kind in logs])


class Mate(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.words = nn.Embedding(WORDS, WIDTH)
        self.body = nn.TransformerEncoder(layer, DEPTH, enable_nested_tensor=False)
        self.catch = nn.Linear(WIDTH, KINDS)

    def forward(self, words, there):
        x = self.body(self.words(words)) * there[:, :, None]
        return self.catch(x.sum(1) / there.sum(1, keepdim=True))


def main():
    collate = pad_rows if cured else pad_each
    batches = iter(DataLoader(Logs(), batch_size=TOGETHER, num_workers=2, collate_fn=collate, pin_memory=True, drop_last=True))
    first = next(batches)
    torch.manual_seed(0)
    mate = Mate().cuda().bfloat16()
    optimizer = torch.optim.AdamW(mate.parameters(), lr=1e-4, fused=True)
    for i in steps(torch.cuda.synchronize, each=4):
        words, there, kinds = (part.cuda(non_blocking=True) for part in (first if i == 0 else next(batches)))
        loss = nn.functional.cross_entropy(mate(words, there.bfloat16()).float(), kinds)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
