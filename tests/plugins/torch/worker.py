"""A rank of the tests of backend "mltcp". Usage: worker.py SCENARIO RANK RANKS STORE. Prints lines of JSON. If the
environment contains WORKER_BACKEND=gloo, uses backend "gloo" over kernel TCP instead of "mltcp"."""
import hashlib
import json
import multiprocessing
import os
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

scenario, rank, ranks, store = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
backend = os.environ.get("WORKER_BACKEND", "mltcp")


def say(**what):
    print(json.dumps(what), flush=True)


def start():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    dist.init_process_group(backend, init_method=f"file://{store}", rank=rank, world_size=ranks,
                            timeout=timedelta(seconds=float(os.environ.get("WORKER_TIMEOUT_S", "60"))))


def use_mltcp():
    if backend == "mltcp":
        global mltcp
        import mltcp.torch


def collectives():
    use_mltcp()
    start()
    generator = torch.Generator().manual_seed(rank)
    found = []
    for length in (1, 1000, 300_000):
        for dtype in (torch.float32, torch.int64, torch.uint8):
            own = (torch.rand(length, generator=generator) * 50).to(dtype)
            for how in (dist.ReduceOp.SUM, dist.ReduceOp.MAX):
                one = own.clone()
                dist.all_reduce(one, how)
                found.append(one)
            one = own.clone()
            dist.broadcast(one, ranks - 1)
            found.append(one)
            one = own.clone()
            dist.reduce(one, 0)
            found.append(one if rank == 0 else own)
            many = [torch.empty_like(own) for _ in range(ranks)]
            dist.all_gather(many, own)
            found += many
            many = [torch.empty_like(own) for _ in range(ranks)] if rank == 0 else None
            dist.gather(own, many, 0)
            found += many or []
            one = torch.empty_like(own)
            dist.scatter(one, [own + i for i in range(ranks)] if rank == 0 else None, 0)
            found.append(one)
    mine = torch.arange(ranks * 7.0) + 100 * rank
    swapped = torch.empty_like(mine)
    dist.all_to_all_single(swapped, mine)
    found.append(swapped)
    # Sends point to point: first to the next rank, then to rank 0, which receives from any rank.
    token = torch.tensor([float(rank)])
    came = torch.empty(1)
    wait = dist.isend(token, (rank + 1) % ranks, tag=5)
    dist.recv(came, (rank - 1) % ranks, tag=5)
    wait.wait()
    found.append(came.clone())
    if rank == 0:
        sources = sorted(dist.recv(came, tag=6) for _ in range(ranks - 1))
        found.append(torch.tensor(sources))
    else:
        dist.send(token, 0, tag=6)
    objects = [None] * ranks
    dist.all_gather_object(objects, {"rank": rank, "text": "x" * rank})
    group = dist.new_group([0, 1])
    if rank < 2:
        one = torch.ones(5) * (rank + 1)
        dist.all_reduce(one, group=group)
        found.append(one)
        dist.barrier(group)
    dist.barrier()
    digest = hashlib.sha256(json.dumps(objects).encode())
    for one in found:
        digest.update(one.numpy().tobytes())
    say(checksum=digest.hexdigest(), results=len(found), backend=dist.get_backend(),
        groups=len(mltcp.torch.state()) if backend == "mltcp" else 0)
    dist.destroy_process_group()


def groups():
    """Iterations are counted for the process group of the trained model, or for the group that a call names."""
    use_mltcp()
    start()
    other = dist.new_group()
    elsewhere = dist.new_group(backend="gloo")
    model = torch.nn.Linear(64, 512)
    ddp = torch.nn.parallel.DistributedDataParallel(model, process_group=other)
    mltcp.torch.mark_iterations(ddp)
    for _ in range(3):
        ddp(torch.ones(4, 64)).sum().backward()
    trained = [one["iterations_by"] for one in mltcp.torch.state()]
    mltcp.torch.begin_iteration(1000, group=dist.distributed_c10d._get_default_group())
    named = [one["iterations_by"] for one in mltcp.torch.state()]
    with mltcp.torch.iteration(1000):
        every = [one["iterations_by"] for one in mltcp.torch.state()]
    refused = []
    for what in (lambda: mltcp.torch.mark_iterations(torch.nn.parallel.DistributedDataParallel(model, process_group=elsewhere)),
                 lambda: mltcp.torch.end_iteration(group=elsewhere)):
        try:
            what()
        except ValueError as error:
            refused.append(str(error))
    dist.barrier()
    say(trained=trained, named=named, every=every, refused=refused)
    dist.destroy_process_group()


def train():
    """Trains a model. WORKER_MARK selects how iterations are marked: empty, "hook", "fp16" or "program"."""
    use_mltcp()
    start()
    mark = os.environ.get("WORKER_MARK", "")
    ddp = torch.nn.parallel.DistributedDataParallel(
        torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.BatchNorm1d(512), torch.nn.Linear(512, 700),
                            torch.nn.ReLU(), torch.nn.Linear(700, 10)),
        bucket_cap_mb=1, gradient_as_bucket_view="WORKER_VIEW" in os.environ)
    if mark == "hook" and backend == "mltcp":
        mltcp.torch.mark_iterations(ddp)
    elif mark == "fp16":
        from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
        if backend == "mltcp":
            mltcp.torch.mark_iterations(ddp, hook=fp16_compress_hook)
        else:
            ddp.register_comm_hook(None, fp16_compress_hook)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05)
    generator = torch.Generator().manual_seed(100 + rank)
    states = []
    for step in range(int(os.environ.get("WORKER_STEPS", "24"))):
        if mark == "program" and backend == "mltcp":
            mltcp.torch.begin_iteration(1_000_000)
        # Uses few samples, because multiplying is slow with the reference BLAS. The size of the gradients does not
        # depend on the number of samples.
        data, labels = torch.randn(4, 64, generator=generator), torch.randint(0, 10, (4,), generator=generator)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(ddp(data), labels).backward()
        optimizer.step()
        if step % 5 == 4:
            dist.all_reduce(torch.tensor([1.0]))  # imitates the all-reduce of a metric
        states += mltcp.torch.state() if backend == "mltcp" else []
    digest = hashlib.sha256()
    for one in ddp.module.parameters():
        digest.update(one.detach().numpy().tobytes())
    dist.barrier()
    say(checksum=digest.hexdigest(), states=states,
        gradient_bytes=sum(one.numel() * 4 for one in ddp.parameters() if one.requires_grad))


def reduce_for_ever():
    use_mltcp()
    start()
    data = torch.ones(4_000_000)
    try:
        for number in range(10_000):
            dist.all_reduce(data)
            data.fill_(1.0)
            if number == 2:
                say(pid=os.getpid())
    except RuntimeError as error:
        say(error=str(error))
        os._exit(3)  # like a rank that dies: no connection is closed


def resident():
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024


def threads():
    found = {}
    for task in Path("/proc/self/task").iterdir():
        status = dict(line.split(":", 1) for line in (task / "status").read_text().splitlines())
        found[task.name] = [status["Cpus_allowed_list"].strip(), os.sched_getscheduler(int(task.name))]
    return found


def footprint():
    torch.set_num_threads(2)
    torch.rand(600, 600) @ torch.rand(600, 600)  # starts the threads with which PyTorch computes
    before, memory, number = threads(), resident(), torch.get_num_threads()
    use_mltcp()
    dist.init_process_group(backend, init_method=f"file://{store}", rank=rank, world_size=ranks)
    dist.all_reduce(torch.ones(1000))
    after = threads()
    say(memory=resident() - memory, changed=[task for task, one in before.items() if after.get(task) != one],
        added=len(after) - len(before), intra_op=[number, torch.get_num_threads()], user=os.getuid())
    dist.barrier()


def last_hold():
    """Rank 0 ends while a thread of its process group waits for Python's lock in order to release the last reference to
    a tensor. If WORKER_HOLDS is set, the program still refers to the process group at that time."""
    use_mltcp()
    start()
    begun = Path(f"{store}.begun")
    if rank == 0:
        if "WORKER_HOLDS" in os.environ:
            sys.held = dist.distributed_c10d._get_default_group()
        sys.setswitchinterval(1000)  # this thread keeps Python's lock until it waits
        dist.all_reduce(torch.ones(1000), async_op=True)
        begun.touch()
        end = time.monotonic() + 1
        while time.monotonic() < end:
            pass
    else:
        while not begun.exists():
            time.sleep(0.01)
        dist.all_reduce(torch.ones(1000))


def fork():
    """A child process that multiprocessing forks inherits the process groups of its parent. If the child does not use
    these groups, it must be able to end."""
    use_mltcp()
    start()
    dist.all_reduce(torch.ones(1000))
    child = multiprocessing.get_context("fork").Process(target=int)
    child.start()
    child.join(20)
    say(exitcode=child.exitcode)
    if child.exitcode is None:
        child.kill()
    dist.barrier()


{"collectives": collectives, "groups": groups, "train": train, "reduce_for_ever": reduce_for_ever, "footprint": footprint,
 "last_hold": last_hold, "fork": fork}[scenario]()
