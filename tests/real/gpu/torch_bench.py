# SPDX-License-Identifier: BSD-3-Clause
"""Runs the programs of gpu_bench.cpp by torch.distributed, with one process per GPU.

    torch_bench.py RANKS allreduce BYTES TIMES | ddp_step TIMES | start_up
"""

import json
import os
import socket
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as processes


def time_allreduce(rank, ranks, count_bytes, times):
    tensor = torch.zeros(count_bytes // 4, device="cuda")

    def loop(n):
        for _ in range(n):
            dist.all_reduce(tensor)
        torch.cuda.synchronize()

    loop(5)
    dist.barrier()
    torch.cuda.synchronize()
    began = time.perf_counter()
    loop(times)
    each = (time.perf_counter() - began) / times * 1e6
    bus = 2 * (ranks - 1) / ranks * count_bytes / each / 1000
    return {"figure": "allreduce", "bytes": count_bytes, "us": round(each, 2), "bus_GBps": round(bus, 1)}


def time_ddp(rank, ranks, times):
    layers = [layer for _ in range(8) for layer in (torch.nn.Linear(4096, 4096), torch.nn.ReLU())]
    model = torch.nn.Sequential(*layers).cuda()
    ddp = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank], gradient_as_bucket_view=True)
    batch = torch.randn(512, 4096, device="cuda")

    def loop(n):
        for _ in range(n):
            ddp(batch).sum().backward()
            for parameter in model.parameters():
                parameter.grad.zero_()
        torch.cuda.synchronize()

    loop(3)
    dist.barrier()
    torch.cuda.synchronize()
    began = time.perf_counter()
    loop(times)
    return {"figure": "ddp_step", "us": round((time.perf_counter() - began) / times * 1e6)}


def start_up(rank, ranks):
    tensor = torch.ones(1, device="cuda")
    dist.all_reduce(tensor)
    assert tensor.item() == ranks
    return None


FIGURES = {"allreduce": time_allreduce, "ddp_step": time_ddp, "start_up": start_up}


def one(rank, ranks, figure, numbers):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=ranks)
    told = FIGURES[figure](rank, ranks, *numbers)
    if rank == 0 and told:
        print(json.dumps(told), flush=True)
    dist.destroy_process_group()


def main():
    ranks, figure, numbers = int(sys.argv[1]), sys.argv[2], [int(each) for each in sys.argv[3:]]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free.getsockname()[1]))
    processes.spawn(one, args=(ranks, figure, numbers), nprocs=ranks)


if __name__ == "__main__":
    main()
