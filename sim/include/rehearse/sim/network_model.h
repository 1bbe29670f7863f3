// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/exec/time.h>

namespace rehearse::sim {

// How long communication takes in virtual time: latency and bandwidth of one link of a homogeneous network (the Hockney
// model, T = latency + bytes / bandwidth), with the step counts of the usual algorithms. For n ranks and S bytes on
// each rank, a = latency, B = bytes_per_second:
//
//   send/recv               a + S / B
//   barrier                 2 ceil(log2 n) a                                    (tree up and down)
//   broadcast, scatter,
//     gather, reduce        ceil(log2 n) a + S_root / B                         (binomial tree, pipelined)
//   allreduce               2 (n-1) a + 2 (n-1)/n S / B                         (ring)
//   reduce_scatter,
//     allgather, alltoall   (n-1) a + (n-1)/n S_total / B                       (ring; S_total: all n pieces)
//   sparse allreduce        as allgather: every rank gets all indices and values and adds them itself
//   coalesced calls         the largest latency among the parts, plus the transfers of all parts
//
// S counts the bytes of an operation's tensors without padding. If the ranks' sizes differ, the rank that moves most
// counts. Latency and transfer are whole nanoseconds each, the transfer rounded to the nearest. In a group of one rank,
// calls take no time.
struct NetworkModel {
  VirtualDuration latency = std::chrono::microseconds(5);
  double bytes_per_second = 50e9;
  // The time that each call of the store takes, apart from check(), getNumKeys(), listKeys() and queueLen(). If it is
  // more than 0, other ranks may run and timed faults may fire between two calls of a rank.
  VirtualDuration store{};
  // Makes each operation longer by up to this fraction: the oracle chooses one of 16 equally spaced values from 0 to
  // `jitter`. If `jitter` is 0, or if an operation takes no time, there is no choice.
  double jitter = 0.0;
};

}  // namespace rehearse::sim
