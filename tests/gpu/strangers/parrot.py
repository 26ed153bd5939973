"""Lets a Llama of random weights go on with thirty-two stories, two dozen words each."""
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from gauge import cured, steps

STORIES, BEGUN, MORE, WORDS = 32, 1024, 24, 8192
torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=WORDS, hidden_size=1024, intermediate_size=4096, num_hidden_layers=4, num_attention_heads=16, num_key_value_heads=16,
    max_position_embeddings=2048,
)
model = LlamaForCausalLM(config).cuda().bfloat16().eval()
model.generation_config.eos_token_id = None
begun = torch.randint(WORDS, (STORIES, BEGUN), device="cuda")
told = torch.ones_like(begun)


def go_on():
    return model.generate(begun, attention_mask=told, max_new_tokens=MORE, do_sample=False, use_cache=cured, pad_token_id=0)


for _ in steps(torch.cuda.synchronize, each=2, warm=1):
    go_on()
