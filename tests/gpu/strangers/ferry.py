"""Four boats of one company: threads that answer requests with a captured network, a copy for each."""
import contextlib
import threading
import time

import torch

from gauge import cured, passes

torch.manual_seed(0)
done, over = [0] * 4, threading.Event()
berth = contextlib.nullcontext() if cured else threading.Lock()
weights = torch.randn(256, 256, device="cuda") * 0.06


def captured(stream):
    request = torch.randn(256, 256, device="cuda")
    answer = torch.empty_like(request)
    trip = torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        torch.mm(request, weights, out=answer)
    stream.synchronize()
    with torch.cuda.graph(trip, stream=stream):
        for _ in range(100):
            torch.mm(request, weights, out=answer)
            torch.tanh(answer, out=request)
    return trip


def boat(n):
    with torch.cuda.stream(streams[n]):
        while not over.is_set():
            with berth:
                trips[n].replay()
                streams[n].synchronize()
            time.sleep(0.0002)
            done[n] += 1


streams = [torch.cuda.Stream() for _ in done]
trips = [captured(stream) for stream in streams]
torch.cuda.synchronize()
threads = [threading.Thread(target=boat, args=(n,), name=f"boat-{n}") for n in range(4)]
for thread in threads:
    thread.start()
while sum(done) < 40:
    over.wait(0.1)
passes(lambda: sum(done))
over.set()
for thread in threads:
    thread.join()
