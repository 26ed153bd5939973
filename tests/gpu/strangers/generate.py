"""Generates text with a random Llama of transformers, token by token, with a cache of keys and values.

truth
needs: torch transformers
bound_by: launch
steps: none
must: launch-bound
may: sync-in-loop tiny-copies under-filled-gpu memory-chain latency-bound
never: pageable-copy host-bound alloc-in-loop no-overlap failed-calls no-cure
why: A token is some 200 kernels of 2 to 5 µs, launched one by one from a lot of Python; one sequence fills no GPU.
"""
import time

import torch
from transformers import LlamaConfig, LlamaForCausalLM, LogitsProcessor, LogitsProcessorList

from stamp import write

TOKENS, CALLS = 64, 7
at = []


class Stamp(LogitsProcessor):
    def __call__(self, input_ids, scores):
        at.append(time.perf_counter_ns())
        return scores


torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=8192, hidden_size=512, intermediate_size=1376, num_hidden_layers=8, num_attention_heads=8, num_key_value_heads=8,
    max_position_embeddings=512,
)
net = LlamaForCausalLM(config).cuda().half().eval()
net.generation_config.eos_token_id = None
prompt = torch.randint(8192, (1, 32), device="cuda")
for _ in range(CALLS):
    net.generate(
        prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=TOKENS, do_sample=False, pad_token_id=0,
        logits_processor=LogitsProcessorList([Stamp()]),
    )
torch.cuda.synchronize()
write(at + [time.perf_counter_ns()], len(at), "median")
