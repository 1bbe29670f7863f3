// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <rehearse_internal/comm/fabric.h>
#include <rehearse_internal/fakes/fake_fabric.h>

namespace rehearse::fakes::testing {

// The calls of all ranks for one operation, made by hand in the form in which the matcher passes them to the fabric.
struct Calls {
  Calls(c10d::OpType type, int ranks);

  comm::Operation& operator[](int rank) { return operations[static_cast<std::size_t>(rank)]; }
  int size() const { return static_cast<int>(operations.size()); }

  std::vector<comm::Operation> operations;
  std::vector<comm::Operation*> pointers;
  std::shared_ptr<comm::GroupIdentity> group = std::make_shared<comm::GroupIdentity>();  // `transfer` points to it
  comm::Transfer transfer;
};

struct TestClock final : exec::Clock {
  VirtualTime now() const noexcept override { return time; }
  void advance_to(VirtualTime to) noexcept override { time = std::max(time, to); }
  VirtualTime time{};
};

struct CountingCompletion final : comm::Completion {
  void on_launched() noexcept override { ++launched; }
  void on_done() noexcept override {
    ++count;
    if (then) then();
  }
  void on_failed(std::exception_ptr) noexcept override { ADD_FAILURE() << "the host's memory does not fail"; }
  int launched = 0;
  int count = 0;  // number of completed transfers
  std::function<void()> then;
};

// A fabric without a world. Transfers take no time.
class FabricTest : public ::testing::Test {
 protected:
  // Validates each rank's call, launches, and expects one completion.
  void run(Calls& calls);

  exec::TimerQueue timers;
  TestClock clock;
  ZeroCost costs;
  FakeFabric fabric{timers, clock, costs};
};

// Different values on every rank, of either sign. With `special`, floating-point tensors of 16 or more elements, and
// the real parts of complex ones, also have NaN, -0, numbers at the ends of half's range and, on ranks with even
// numbers, infinity.
at::Tensor random_tensor(at::IntArrayRef sizes, at::ScalarType dtype, int rank, bool special = false);

// The reduction of `inputs` in order, computed by ATen one op at a time. Floating-point types narrower than float are
// reduced in float and rounded at the end. MIN and MAX of floating-point types follow the order of Gloo's ring, which
// determines the result for NaN.
at::Tensor reduced(const std::vector<at::Tensor>& inputs, c10d::ReduceOp::RedOpType op,
                   const std::vector<double>& factors = {});

inline const std::vector<int> kRanks{1, 2, 3, 4, 7, 8};
inline const std::vector<std::int64_t> kSizes{0, 1, 17, 20'011};

}  // namespace rehearse::fakes::testing
