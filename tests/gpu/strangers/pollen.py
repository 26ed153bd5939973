"""Trains an encoder to guess hidden words; a worker cuts the text into pieces."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from gauge import steps

WORDS, LENGTH, WIDTH, HIDDEN_WORD = 8192, 1024, 1024, 0


class Pieces(Dataset):
    def __init__(self):
        self.text = np.random.default_rng(0).integers(1, WORDS, 1 << 24)

    def __len__(self):
        return 1 << 20

    def __getitem__(self, i):
        begin = i * 977 % (len(self.text) - LENGTH)
        return torch.from_numpy(self.text[begin : begin + LENGTH].copy())


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(WIDTH, 16, 4 * WIDTH, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.body = nn.TransformerEncoder(layer, 8, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, ids):
        return self.head(self.body(self.embed(ids)))


def main():
    torch.manual_seed(0)
    model = Encoder().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    pieces = iter(DataLoader(Pieces(), batch_size=24, num_workers=1, pin_memory=True))
    for _ in steps(torch.cuda.synchronize, each=5):
        ids = next(pieces).cuda(non_blocking=True)
        hidden = torch.rand(ids.shape, device="cuda") < 0.15
        with torch.autocast("cuda", dtype=torch.bfloat16):
            guess = model(ids.masked_fill(hidden, HIDDEN_WORD))
            loss = nn.functional.cross_entropy(guess.flatten(0, 1), ids.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
