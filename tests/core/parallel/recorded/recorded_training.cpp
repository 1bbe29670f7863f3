// SPDX-License-Identifier: BSD-3-Clause
#include "core/parallel/recorded/recorded_training.h"

#include <algorithm>
#include <bit>
#include <set>

#include <gmock/gmock.h>

namespace rehearse_test::recorded {

void Notes::note(const RankContext& ctx, int step, const torch::nn::Module& module) {
  auto& tensors = states_[{ctx.rank(), step}];
  for (const auto& item : module.named_parameters()) tensors[item.key()] = item.value().detach().clone();
  for (const auto& item : module.named_buffers()) tensors[item.key()] = item.value().detach().clone();
}

void Notes::expect(const RecordedState& state, int rank, double tolerance) const {
  const bool exact = tolerance == 0;
  const auto& tensors = states_.at({rank, state.step});
  for (const auto& [name, bits] : state.bits) {
    const auto& tensor = tensors.at(name);
    if (exact) {
      EXPECT_EQ(bits_of(tensor), bits) << name;
    } else {
      const auto expected = tensor_of(bits, tensor.scalar_type()).view_as(tensor);
      EXPECT_TRUE(at::allclose(tensor, expected, tolerance, tolerance)) << name << "\n" << tensor << expected;
    }
  }
}

void expect_recorded(const std::string& name, const Body& body, Rounding rounding) {
  std::map<int, std::vector<RecordedState>> by_ranks;
  for (auto& state : recorded_states(name)) by_ranks[state.ranks].push_back(state);
  EXPECT_EQ(by_ranks.size(), 5u);
  for (const auto& [ranks, states] : by_ranks) {
    for (const std::uint64_t seed : {1, 2}) {
      SCOPED_TRACE(testing::Message() << name << " on " << ranks << " ranks, seed " << seed);
      Notes notes;
      run_ranks({.ranks = ranks, .seed = seed}, [&](RankContext& ctx) { body(ctx, notes); });
      std::set<std::pair<int, int>> compared;
      for (const auto& state : states) {
        const bool exact = rounding.exact_at_first && state.step == 1 && std::has_single_bit(unsigned(ranks));
        notes.expect(state, state.rank, exact ? 0 : rounding.relative);
        compared.insert({state.rank, state.step});
        // If the last rank's state after this step was not recorded, it must equal that of the recorded rank.
        const bool own = std::any_of(states.begin(), states.end(), [&](const RecordedState& other) {
          return other.rank == ranks - 1 && other.step == state.step;
        });
        if (!own) notes.expect(state, ranks - 1, exact ? 0 : rounding.relative);
      }
    }
  }
}

}  // namespace rehearse_test::recorded
