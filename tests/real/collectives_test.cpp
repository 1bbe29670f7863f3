// SPDX-License-Identifier: BSD-3-Clause
// Contract: the c10d operations that PyTorch's NCCL back end supports give the same results on devices as in host
// memory. The tests cover all reductions of that back end, and several dtypes and sizes. Tensors in host memory still
// use the host's fabric.
#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "collective_cases.h"
#include "real_world.h"

namespace rehearse::real {
namespace {

using comm::ProcessGroup;

class Collectives : public RealWorld, public ::testing::WithParamInterface<int> {
 protected:
  // The values of each rank after each case, in host memory.
  std::vector<std::vector<Tensors>> results_of(const std::vector<CollectiveCase>& cases, bool on_devices) {
    std::vector<std::vector<Tensors>> results(static_cast<std::size_t>(GetParam()));
    const auto outcome = run(GetParam(), [&](int rank, const ProcessGroup& group) {
      const Place place = [&](const at::Tensor& host) { return on_devices ? on_device(host, rank) : host.clone(); };
      auto& own = results[static_cast<std::size_t>(rank)];
      for (const auto& each : cases) own.push_back(each.calls(rank, GetParam(), group, place));
      exec::this_rank::sleep_for(std::chrono::milliseconds(1));  // by then the devices are done
      for (auto& tensors : own) {
        for (auto& tensor : tensors) tensor = on_host(tensor);
      }
    });
    EXPECT_EQ(outcome.ending, exec::Ending::all_returned)
        << failure(outcome) << outcome.stop_reason << " after " << results[0].size() << " cases"
        << (on_devices ? " on devices" : "");
    EXPECT_TRUE(pending.empty());
    return results;
  }

  void expect_alike_on_devices(const std::vector<CollectiveCase>& cases) {
    expect_alike(cases, results_of(cases, false), results_of(cases, true));
  }
};

TEST_P(Collectives, Reductions_GiveWhatTheHostGives) { expect_alike_on_devices(reductions()); }
TEST_P(Collectives, Copies_GiveWhatTheHostGives) { expect_alike_on_devices(copies()); }
TEST_P(Collectives, Exchanges_GiveWhatTheHostGives) { expect_alike_on_devices(exchanges()); }

INSTANTIATE_TEST_SUITE_P(Sizes, Collectives, ::testing::Values(1, 2, 3, 4),
                         [](const auto& info) { return fmt::format("{}Ranks", info.param); });

}  // namespace
}  // namespace rehearse::real
