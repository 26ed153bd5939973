"""Makes embeddings of paragraphs with a BERT of random weights."""
import torch
from transformers import BertConfig, BertModel

from gauge import cured, steps

torch.manual_seed(0)
config = BertConfig(hidden_size=1024, num_hidden_layers=12, num_attention_heads=16, intermediate_size=4096, vocab_size=30522)
precision = torch.bfloat16 if cured else torch.float32
model = BertModel(config, add_pooling_layer=False).to("cuda", precision).eval()
paragraphs = torch.randint(1000, 30000, (48, 256), device="cuda")
store = torch.empty(48, 1024, device="cuda")


@torch.inference_mode()
def embed(ids):
    hidden = model(input_ids=ids).last_hidden_state
    return torch.nn.functional.normalize(hidden.mean(1).float(), dim=-1)


for _ in steps(torch.cuda.synchronize, each=4):
    store.copy_(embed(paragraphs))
