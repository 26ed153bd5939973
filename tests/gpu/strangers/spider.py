"""Lets eight topics spread over a web of a million pages, along sixteen million links."""
import torch

from gauge import cured, steps

PAGES, LINKS, TOPICS = 1 << 20, 1 << 24, 8
torch.manual_seed(0)
links = torch.randint(PAGES, (2, LINKS), device="cuda")
strength = torch.rand(LINKS, device="cuda") * (PAGES / LINKS)
web = torch.sparse_coo_tensor(links, strength, (PAGES, PAGES))
if cured:
    web = web.coalesce()
topics = torch.rand(PAGES, TOPICS, device="cuda")
first = topics.clone()
with torch.no_grad():
    for _ in steps(torch.cuda.synchronize, each=4):
        topics = torch.sparse.mm(web, topics).lerp_(first, 0.15)
