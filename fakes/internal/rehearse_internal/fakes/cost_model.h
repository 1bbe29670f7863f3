// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/exec/time.h>
#include <rehearse_internal/comm/fabric.h>

namespace rehearse::fakes {

// Computes how long a transfer takes in virtual time, from the arrival of its last rank.
class CostModel {
 public:
  virtual ~CostModel() = default;

  // FakeFabric asks once for each transfer, when it starts. Zero or less: the transfer ends at once. The function may
  // ask the oracle (and so throw what the oracle throws). It must not touch the tensors' data.
  virtual VirtualDuration duration(const comm::Transfer& transfer) const = 0;
};

// Communication takes no time.
class ZeroCost final : public CostModel {
 public:
  VirtualDuration duration(const comm::Transfer&) const override { return VirtualDuration::zero(); }
};

}  // namespace rehearse::fakes
