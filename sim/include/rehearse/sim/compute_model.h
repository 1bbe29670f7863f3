// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/exec/time.h>

namespace rehearse::sim {

// How long a rank's operators take in virtual time: the roofline of one device (Williams et al., 2009) plus the time to
// launch an operator.
//
//   per_operator + max(flops / flops_per_second, bytes / bytes_per_second)
//
// - flops: those of matrix products, convolutions and attention, by the formulas of torch.utils.flop_counter. Other
//   operators count as 0.
// - bytes: the sizes of an operator's input and output tensors. An operator that only returns a view, or memory that it
//   does not write (empty()), counts as 0.
// - A term whose rate is 0 is left out. Each operator takes whole nanoseconds, rounded to the nearest.
//
// The model counts each operator that a rank's own fiber passes to LibTorch's dispatcher, also in backward passes,
// including DDP's copies to and from buckets. It counts an operator once, whatever the operator calls inside. The
// exception is a composite operator: the model counts its parts instead. It does not count what helper fibers (threads,
// callbacks of futures) compute, what collectives do inside (the network model covers that), or operators on fakes. See
// docs/decisions/0006-compute-in-virtual-time.md.
struct ComputeModel {
  double flops_per_second = 0;
  double bytes_per_second = 0;
  VirtualDuration per_operator{};

  // False, the default: operators take no time.
  bool on() const noexcept {
    return flops_per_second > 0 || bytes_per_second > 0 || per_operator > VirtualDuration::zero();
  }
};

}  // namespace rehearse::sim
