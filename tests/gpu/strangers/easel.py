"""Paints thirty-two pictures out of noise, in ten rounds, as thirty-two descriptions want them."""
import torch
from torch import nn

from gauge import cured, steps

SHEETS, WORDS, LONG, SPOTS, WIDTH, ROUNDS = 32, 8192, 256, 256, 1024, 10
torch.manual_seed(0)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(WIDTH, 16, 4 * WIDTH, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.embed, self.body = nn.Embedding(WORDS, WIDTH), nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)

    def forward(self, text):
        return self.body(self.embed(text))


class Painter(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerDecoderLayer(WIDTH, 16, 4 * WIDTH, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.when, self.body = nn.Embedding(ROUNDS, WIDTH), nn.TransformerDecoder(layer, 4)

    def forward(self, picture, when, meant):
        return self.body(picture + self.when.weight[when], meant)


with torch.device("cuda"):
    reader, painter = Reader().bfloat16().eval(), Painter().bfloat16().eval()
    texts = torch.randint(WORDS, (8, SHEETS, LONG))


def paint(text):
    picture = torch.randn(SHEETS, SPOTS, WIDTH, device="cuda", dtype=torch.bfloat16)
    meant = reader(text) if cured else None
    for when in reversed(range(ROUNDS)):
        noise = painter(picture, when, meant if cured else reader(text))
        picture = picture - 0.1 * noise
    return picture


with torch.inference_mode():
    for i in steps(torch.cuda.synchronize, each=2, warm=2):
        paint(texts[i % 8])
