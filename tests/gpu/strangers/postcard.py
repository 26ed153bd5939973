"""Has a language model of random weights finish the postcards that lie on the desk."""
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from gauge import cured, steps

CARDS, BEGUN, MORE, WORDS = 8, 48, 12, 8192
torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=WORDS, hidden_size=1024, intermediate_size=2816, num_hidden_layers=8, num_attention_heads=16, num_key_value_heads=8,
    max_position_embeddings=512,
)
model = LlamaForCausalLM(config).cuda().bfloat16().eval()
model.generation_config.eos_token_id = None
desk = torch.randint(WORDS, (CARDS, BEGUN), device="cuda")


def finish(cards):
    return model.generate(cards, attention_mask=torch.ones_like(cards), max_new_tokens=MORE, do_sample=False, pad_token_id=0)


def finish_all():
    if cured:
        return finish(desk)
    return torch.cat([finish(card[None]) for card in desk])


for _ in steps(torch.cuda.synchronize, warm=2):
    finish_all()
