"""Lets a Qwen of random weights sing on for thirty-two listeners, sixteen words each."""
import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from gauge import cured, steps

LISTENERS, HEARD, MORE, WORDS = 32, 960, 16, 8192
torch.manual_seed(0)
config = Qwen2Config(
    vocab_size=WORDS, hidden_size=1024, intermediate_size=2816, num_hidden_layers=8, num_attention_heads=16, num_key_value_heads=16,
    max_position_embeddings=2048,
)
model = Qwen2ForCausalLM(config).cuda().bfloat16().eval()
model.generation_config.eos_token_id = None
heard = torch.randint(WORDS, (LISTENERS, HEARD), device="cuda")
mask = torch.ones_like(heard)
kept = {} if cured else {"cache_implementation": "offloaded"}


def sing():
    return model.generate(heard, attention_mask=mask, max_new_tokens=MORE, do_sample=False, pad_token_id=0, **kept)


for _ in steps(torch.cuda.synchronize, warm=1):
    sing()
