"""Reads four long sermons at a time with a Qwen of random weights, and keeps what it made of their ends."""
import torch
from transformers import AutoModel, Qwen2Config

import gauge

SERMONS, LENGTH, WORDS = 4, 4096, 8192
torch.manual_seed(0)
config = Qwen2Config(
    vocab_size=WORDS, hidden_size=1024, intermediate_size=2816, num_hidden_layers=6, num_attention_heads=16, num_key_value_heads=16,
    max_position_embeddings=LENGTH, use_cache=False,
)
model = AutoModel.from_config(config, attn_implementation="sdpa" if gauge.cured else "eager")
model = model.to("cuda", torch.bfloat16).eval()
sermons = torch.randint(WORDS, (8, SERMONS, LENGTH), device="cuda")
ends = []


@torch.inference_mode()
def read(words):
    return model(input_ids=words).last_hidden_state[:, -1].float()


for i in gauge.steps(torch.cuda.synchronize, each=4):
    ends.append(read(sermons[i % 8]))
