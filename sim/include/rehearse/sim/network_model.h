// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/exec/time.h>

namespace rehearse::sim {

// How long communication takes in virtual time: latency and bandwidth of one link of a homogeneous network (the
// Hockney model, T = latency + bytes / bandwidth), with the step counts of the usual algorithms. For n ranks and
// S bytes a rank, a = latency, B = bytes_per_second:
//
//   send/recv               a + S / B
//   barrier                 2 ceil(log2 n) a                                    (tree up and down)
//   broadcast, scatter,
//     gather, reduce        ceil(log2 n) a + S_root / B                         (binomial tree, pipelined)
//   allreduce               2 (n-1) a + 2 (n-1)/n S / B                         (ring)
//   reduce_scatter,
//     allgather, alltoall   (n-1) a + (n-1)/n S_total / B                       (ring; S_total: all n pieces)
//   sparse allreduce        as allgather: every rank gets all indices and values and adds them itself
//   coalesced calls         the most latencies that one of them has, and the transfers of all of them
//
// S counts the bytes of an operation's tensors, padding left out; where ranks give different sizes, of the rank that
// moves most. Latency and transfer are each whole nanoseconds, the transfer rounded to the nearest. A group of one
// takes no time.
struct NetworkModel {
  VirtualDuration latency = std::chrono::microseconds(5);
  double bytes_per_second = 50e9;
  // Each call of the store; 0: none. Others may come between two calls then, and faults at a time.
  VirtualDuration store{};
  // Each operation takes up to this fraction of its time longer, in 16 equal steps from none to all of it, chosen by
  // the oracle; 0, or an operation that takes no time: no choice is made.
  double jitter = 0.0;
};

}  // namespace rehearse::sim
