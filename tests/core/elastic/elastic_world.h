// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/sim/world.h>

#include "bit_equal.h"
#include "elastic_ddp/training.h"

namespace rehearse::test {

// The result of a run of one of the elastic examples.
struct ElasticRun {
  Report report;
  std::vector<at::Tensor> parameters;  // by rank; undefined: the rank was not there at the end
  // The first step of each round. The rank that took part in the most rounds reported these steps.
  std::vector<std::int64_t> took_up;

  std::int64_t took_up_last() const { return took_up.back(); }
  bool fired(std::size_t fault = 0) const { return report.faults.at(fault).times > 0; }
};

inline WorldOptions elastic_world(const std::vector<std::string>& faults, int ranks, std::uint64_t seed = 1) {
  WorldOptions options;
  options.ranks = ranks;
  options.seed = seed;
  options.explain_failures = false;
  options.explain_remarks = false;
  for (const auto& text : faults) options.faults.push_back(parse_fault(text + " optional=true"));
  return options;
}

// `train` returns the rank's entry of ElasticRun::parameters.
template <class Train>
ElasticRun run_job(const WorldOptions& options, Train&& train) {
  ElasticRun run;
  run.parameters.resize(static_cast<std::size_t>(options.ranks));
  World world(options);
  run.report = world.run([&](RankContext& ctx) { run.parameters[static_cast<std::size_t>(ctx.rank())] = train(ctx); });
  std::vector<std::vector<std::int64_t>> of_rank(static_cast<std::size_t>(options.ranks));
  for (const auto& result : world.results()) {
    of_rank[static_cast<std::size_t>(result.rank)].push_back(result.value.item<std::int64_t>());
  }
  for (auto& own : of_rank) {
    if (own.size() > run.took_up.size()) run.took_up = std::move(own);
  }
  return run;
}

inline ElasticRun run_elastic(const WorldOptions& options, const elastic_ddp::Job& job,
                              const elastic::Options& elastic = {}) {
  return run_job(options, [&](RankContext& ctx) { return elastic_ddp::train(ctx, job, elastic); });
}

// Expects that every rank is there at the end, with exactly these parameters.
inline void expect_all_have(const ElasticRun& run, const at::Tensor& expected, const std::string& faults) {
  EXPECT_EQ(run.report.verdict, Verdict::ok) << faults << ": " << run.report.headline;
  for (std::size_t rank = 0; rank < run.parameters.size(); ++rank) {
    const auto& found = run.parameters[rank];
    ASSERT_TRUE(found.defined()) << faults << ": rank " << rank;
    EXPECT_THAT(found, rehearse::test::BitEqual(expected)) << faults << ": rank " << rank;
  }
}

}  // namespace rehearse::test
