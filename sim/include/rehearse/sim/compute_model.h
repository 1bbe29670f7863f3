// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/exec/time.h>

namespace rehearse::sim {

// How long a rank's operators take in virtual time: the roofline of one device (Williams et al., 2009) and what it
// takes to launch an operator.
//
//   per_operator + max(flops / flops_per_second, bytes / bytes_per_second)
//
// flops: of matrix products, convolutions and attention, by the formulas of torch.utils.flop_counter; none of others.
// bytes: of the tensors that an operator takes and gives; none of one that gives a view or fresh memory.
// A term whose rate is 0 is left out. Each operator takes whole nanoseconds, rounded to the nearest.
//
// Counted is what a rank's own fiber gives to LibTorch's dispatcher, in backward passes too (DDP's copies to and from
// buckets among it): each operator once, whatever it calls inside; of a composite one the operators that it is made
// of. Not counted: what helper fibers (threads, callbacks of futures) compute, what collectives do inside (the network
// model has that), and operators on fakes. docs/decisions/0006-compute-in-virtual-time.md.
struct ComputeModel {
  double flops_per_second = 0;
  double bytes_per_second = 0;
  VirtualDuration per_operator{};

  // By default computing takes no time.
  bool on() const noexcept {
    return flops_per_second > 0 || bytes_per_second > 0 || per_operator > VirtualDuration::zero();
  }
};

}  // namespace rehearse::sim
