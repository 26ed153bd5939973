"""Takes field after field of readings from main memory and runs a filter over each."""
import numpy
import torch

from gauge import cured, steps

torch.manual_seed(0)
torch.set_float32_matmul_precision("high")
rng = numpy.random.default_rng(0)
fields = [torch.from_numpy(rng.standard_normal((4096, 4096), dtype=numpy.float32)) for _ in range(3)]
if cured:
    fields = [field.pin_memory() for field in fields]
filters = torch.randn(4096, 4096, device="cuda") * 0.015
side = torch.cuda.Stream() if cured else torch.cuda.current_stream()


def fetch(i):
    with torch.cuda.stream(side):
        return fields[i % 3].to("cuda", non_blocking=True)


def sweep(x):
    torch.cuda.current_stream().wait_stream(side)
    x.record_stream(torch.cuda.current_stream())
    for _ in range(8):
        x = torch.tanh(x @ filters)
    return x.mean()


ahead = fetch(0)
for i in steps(torch.cuda.synchronize, each=20):
    now, ahead = ahead, fetch(i + 1)
    sweep(now)
