"""Learns whether a letter is friendly or sour."""
import numpy as np
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from torch import nn
from transformers import PreTrainedTokenizerFast

from gauge import cured, steps

LETTERS, BATCH, LENGTH, WIDTH, DEPTH = 1024, 64, 384, 512, 6
rng = np.random.default_rng(0)
SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "is")]
vocabulary = {piece: i for i, piece in enumerate(["[PAD]", "[UNK]", *SYLLABLES, *("##" + s for s in SYLLABLES)])}
pieces = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
pieces.normalizer = normalizers.BertNormalizer()
pieces.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=pieces, pad_token="[PAD]", unk_token="[UNK]")
letters = [" ".join("".join(rng.choice(SYLLABLES, rng.integers(1, 4))).title() for _ in range(260)) for _ in range(LETTERS)]
friendly = torch.from_numpy(rng.integers(0, 2, LETTERS)).cuda()


def cut(texts):
    return tokenizer(texts, padding="max_length", truncation=True, max_length=LENGTH, return_tensors="pt").input_ids.cuda()


class Judge(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.embed = nn.Embedding(len(vocabulary), WIDTH)
        self.body = nn.TransformerEncoder(layer, DEPTH, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, 2)

    def forward(self, ids):
        return self.head(self.body(self.embed(ids)).mean(1))


torch.manual_seed(0)
judge = Judge().cuda()
optimizer = torch.optim.AdamW(judge.parameters(), lr=1e-4, fused=True)
ready = torch.cat([cut(letters[i : i + BATCH]) for i in range(0, LETTERS, BATCH)]) if cured else None
for i in steps(torch.cuda.synchronize, each=4):
    at = i % (LETTERS // BATCH) * BATCH
    ids = ready[at : at + BATCH] if cured else cut(letters[at : at + BATCH])
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(judge(ids), friendly[at : at + BATCH])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
