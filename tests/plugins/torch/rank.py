"""A rank of a small training. Usage: rank.py RANK RANKS STORE. Prints a line of JSON with a checksum of the model's
parameters and the state of the congestion control."""
import hashlib
import json
import os
import sys

import torch
import torch.distributed as dist

if os.environ.get("GLOO_DEVICE_TRANSPORT") == "MLTCP":
    import mltcp.torch

rank, ranks, store = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
torch.manual_seed(1)
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
model = torch.nn.parallel.DistributedDataParallel(
    torch.nn.Sequential(torch.nn.Linear(64, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 512), torch.nn.ReLU(),
                        torch.nn.Linear(512, 10)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
generator = torch.Generator().manual_seed(100 + rank)
sent = 0
for step in range(6):
    if "mltcp.torch" in sys.modules:
        mltcp.torch.begin_iteration(1)  # begins the count of bytes, which then includes only bytes of this step
    # Uses few samples, because multiplying is slow with the reference BLAS. The size of the gradients does not depend
    # on the number of samples.
    data = torch.randn(4, 64, generator=generator)
    labels = torch.randint(0, 10, (4,), generator=generator)
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(data), labels).backward()
    optimizer.step()
    if "mltcp.torch" in sys.modules:
        sent += mltcp.torch.state()[0]["bytes_sent"]
state = mltcp.torch.state() if "mltcp.torch" in sys.modules else []
dist.barrier()
digest = hashlib.sha256()
for parameter in model.parameters():
    digest.update(parameter.detach().numpy().tobytes())
print(json.dumps({"checksum": digest.hexdigest(), "state": state, "gradient_bytes": sent}))
