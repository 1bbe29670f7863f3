// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/comm/test_world.h"

namespace rehearse::comm {

// Records the transfers that reach the fabric, which completes them at once.
class Coalescing : public CommTest {
 protected:
  Coalescing() {
    ON_CALL(fabric, launch).WillByDefault([this](const Transfer& transfer, Completion& done) {
      types.push_back(transfer.type);
      for (const auto* const call : transfer.calls) calls.push_back(*call);
      done.on_complete();
    });
  }

  void run_on_two(const std::function<WorkPtr(int rank, const ProcessGroup& group)>& call) {
    const auto outcome = run(2, [&](int rank, const ProcessGroup& group) { EXPECT_TRUE(call(rank, group)->wait()); });
    EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
  }

  // The error text of a refused call, or "accepted".
  static std::string refusal_of(const std::function<void()>& call) {
    try {
      call();
    } catch (const c10::Error& error) {
      return error.what_without_backtrace();
    }
    return "accepted";
  }

  std::vector<c10d::OpType> types;
  std::vector<Operation> calls;
};

}  // namespace rehearse::comm
