// SPDX-License-Identifier: BSD-3-Clause
// Contract: a program gives the same results on fibers as on processes with gloo: equal bits if the order of additions
// does not matter, otherwise equal within rounding. If gloo refuses a call, we refuse it, too, except in cases of
// Expected::gloo_lacks.
#include <algorithm>
#include <bit>
#include <iostream>

#include <gtest/gtest.h>

#include <rehearse/sim/world.h>

#include "bit_equal.h"
#include "core/parallel/recorded/recorded_data.h"
#include "gloo_processes.h"
#include "refusal_texts.h"

namespace rehearse::parity {

std::vector<Case> cases_of(const std::string& suite) {
  if (suite == "reductions") return reduction_cases();
  if (suite == "collectives") return collective_cases();
  if (suite == "layouts") return layout_cases();
  if (suite == "composed") return composed_cases();
  if (suite == "ddp") return ddp_cases();
  if (suite == "fsdp") return fsdp_cases();
  if (suite == "power_sgd") return power_sgd_cases();
  return refusal_cases();
}

namespace {

std::vector<std::vector<Result>> run_on_fibers(const std::string& suite, int ranks) {
  std::vector<std::vector<Result>> results(static_cast<std::size_t>(ranks));
  // The memory checkers add a dispatch key to the list in LibTorch's error about a missing kernel.
  World world({.ranks = ranks, .check_level = CheckLevel::none});
  const Report report = world.run([&](RankContext& ctx) {
    results[static_cast<std::size_t>(ctx.rank())] = run_cases(cases_of(suite), ctx.group());
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  return results;
}

// Adding up n numbers between -1 and 1 rounds n-1 times. The partial sums are at most n, so each rounding adds an error
// of at most n/2 epsilons. Two sums with such errors differ by less than n*n epsilons. Larger numbers scale this bound.
// Means of exact()'s small numbers round once.
bool within_rounding(const at::Tensor& a, const at::Tensor& b, int ranks) {
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
  double epsilon = 0;
  switch (a.scalar_type()) {
    case at::kHalf:
      epsilon = 0x1p-10;
      break;
    case at::kBFloat16:
      epsilon = 0x1p-7;
      break;
    case at::kFloat:
      epsilon = 0x1p-23;
      break;
    default:
      epsilon = 0x1p-52;
  }
  if (a.is_complex()) return within_rounding(at::view_as_real(a), at::view_as_real(b), ranks);
  const auto difference = (a.to(at::kDouble) - b.to(at::kDouble)).abs();
  if (difference.numel() == 0) return true;
  const double largest = std::max(1.0, b.to(at::kDouble).abs().max().item<double>());
  return difference.max().item<double>() <= largest * ranks * ranks * epsilon;
}

bool may_be_rounded(Expected expected, int ranks) {
  if (expected == Expected::exact_sums) return !std::has_single_bit(static_cast<unsigned>(ranks));
  return expected == Expected::rounding && ranks > 2;
}

::testing::AssertionResult agree(const Case& each, const Result& fibers, const Result& gloo, int ranks) {
  const bool one_refuses = each.expected == Expected::gloo_lacks || each.expected == Expected::gloo_is_lax;
  const bool we_refuse = each.expected == Expected::gloo_is_lax || (!one_refuses && !gloo.refusal.empty());
  const bool gloo_refuses = one_refuses ? !we_refuse : we_refuse;
  if (fibers.refusal.empty() == we_refuse || gloo.refusal.empty() == gloo_refuses) {
    return ::testing::AssertionFailure() << "gloo: '" << gloo.refusal << "', we: '" << fibers.refusal << '\'';
  }
  if (we_refuse && gloo_refuses) {
    const auto agreed = refusals_agree(each.name, fibers.refusal, gloo.refusal);
    if (!agreed) return agreed;
  }
  if (one_refuses) return ::testing::AssertionSuccess();
  if (fibers.values.size() != gloo.values.size()) return ::testing::AssertionFailure() << "different numbers of values";
  for (std::size_t i = 0; i < gloo.values.size(); ++i) {
    const auto& ours = fibers.values[i];
    const bool same = may_be_rounded(each.expected, ranks) ? within_rounding(ours, gloo.values[i], ranks)
                                                           : test::bit_difference(ours, gloo.values[i]).empty();
    if (!same) {
      return ::testing::AssertionFailure() << "value " << i << ": gloo " << gloo.values[i] << "\nwe " << ours;
    }
  }
  return ::testing::AssertionSuccess();
}

class GlooParity : public ::testing::TestWithParam<int> {
 protected:
  void compare(const std::string& suite) {
    const int ranks = GetParam();
    const auto cases = cases_of(suite);
    const auto gloo = run_on_gloo(suite, ranks);
    const auto fibers = run_on_fibers(suite, ranks);
    std::size_t equal = 0;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      bool all = true;
      for (std::size_t rank = 0; rank < gloo.size(); ++rank) {
        ASSERT_EQ(gloo[rank].size(), cases.size());
        ASSERT_EQ(fibers[rank].size(), cases.size());
        const auto agreed = agree(cases[i], fibers[rank][i], gloo[rank][i], ranks);
        EXPECT_TRUE(agreed) << cases[i].name << " on rank " << rank;
        all = all && agreed;
      }
      if (all) ++equal;
    }
    EXPECT_EQ(equal, cases.size());
    std::cout << "gloo parity, " << suite << ": " << equal << " cases x " << ranks << " ranks equal\n";
    total_ += equal * gloo.size();
  }

  static void TearDownTestSuite() { std::cout << "gloo parity: " << total_ << " results of ranks equal in all\n"; }

  inline static std::size_t total_ = 0;
};

TEST_P(GlooParity, Reductions) { compare("reductions"); }
TEST_P(GlooParity, Collectives) { compare("collectives"); }
TEST_P(GlooParity, Layouts) { compare("layouts"); }
TEST_P(GlooParity, Composed) { compare("composed"); }
TEST_P(GlooParity, Refusals) { compare("refusals"); }
TEST_P(GlooParity, DistributedDataParallel) { compare("ddp"); }
TEST_P(GlooParity, FullyShardedDataParallel) { compare("fsdp"); }

// The recorded state of PyTorch's hook on this rank. If none was recorded, the first rank's state.
std::vector<rehearse_test::RecordedState> recorded_of(const std::string& name, int ranks, int rank) {
  std::vector<rehearse_test::RecordedState> own, first;
  for (auto& state : rehearse_test::recorded_states(name)) {
    if (state.ranks != ranks) continue;
    if (state.rank == rank) own.push_back(state);
    if (state.rank == 0) first.push_back(state);
  }
  return own.empty() ? first : own;
}

// Compares with the recorded bits of PyTorch's own hook over gloo. Our hook multiplies and adds in the same order, so
// all bits must be equal.
class PowerSgdOverGloo : public ::testing::TestWithParam<int> {};

TEST_P(PowerSgdOverGloo, GivesPyTorchsBits) {
  const int ranks = GetParam();
  // The environment of the recording: kernels that do not depend on the processor.
  const auto gloo = run_on_gloo("power_sgd", ranks, {"MKL_CBWR=COMPATIBLE", "ATEN_CPU_CAPABILITY=default"});
  const auto cases = power_sgd_cases();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    for (const int rank : {0, ranks - 1}) {
      const auto& values = gloo[static_cast<std::size_t>(rank)][i].values;
      const auto states = recorded_of(cases[i].name, ranks, rank);
      std::size_t next = 0;
      for (const auto& state : states) {
        for (const char* name : {"wide.weight", "wide.bias", "narrow.weight", "narrow.bias"}) {
          ASSERT_LT(next, values.size());
          EXPECT_EQ(rehearse_test::bits_of(values[next++]), state.bits.at(name))
              << cases[i].name << ", rank " << rank << " of " << ranks << ", step " << state.step << ", " << name;
        }
      }
      EXPECT_EQ(next, values.size());
      EXPECT_EQ(next, 8u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(ranks, PowerSgdOverGloo, ::testing::Values(2, 3, 5));
INSTANTIATE_TEST_SUITE_P(ranks, GlooParity, ::testing::Values(2, 3, 4, 5));

}  // namespace
}  // namespace rehearse::parity

int main(int argc, char** argv) {
  if (const auto exit_code = rehearse::parity::run_as_gloo_rank(argc, argv)) return *exit_code;
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
