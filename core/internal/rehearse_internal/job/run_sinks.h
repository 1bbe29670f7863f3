// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <rehearse_internal/comm/mismatch.h>
#include <rehearse_internal/exec/failure.h>

// The reactions of a run to the failures and mismatches of its ranks, in every mode whose ranks are fibers.
namespace rehearse {

// A rank's exception ends the world, because its peers would only wait for it.
class EndOnFailure final : public exec::FailureSink {
 public:
  Verdict on_rank_failure(const exec::RankFailure&) override { return Verdict::end_world; }
};

class KeepMismatches final : public comm::CheckerSink {
 public:
  explicit KeepMismatches(std::vector<comm::Mismatch>& kept) : kept_(kept) {}
  void on_mismatch(const comm::Mismatch& mismatch) override { kept_.push_back(mismatch); }

 private:
  std::vector<comm::Mismatch>& kept_;
};

}  // namespace rehearse
