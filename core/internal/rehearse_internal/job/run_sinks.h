// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <rehearse_internal/comm/mismatch.h>
#include <rehearse_internal/exec/failure.h>

// What a run does with what goes wrong in it, whatever carries its ranks.
namespace rehearse {

// A rank's exception ends the world: its peers would only wait for it.
class EndOnFailure final : public exec::FailureSink {
 public:
  Verdict on_rank_failure(const exec::RankFailure&) override { return Verdict::end_world; }
};

// Keeps what ranks disagreed about, for the report.
class KeepMismatches final : public comm::CheckerSink {
 public:
  explicit KeepMismatches(std::vector<comm::Mismatch>& kept) : kept_(kept) {}
  void on_mismatch(const comm::Mismatch& mismatch) override { kept_.push_back(mismatch); }

 private:
  std::vector<comm::Mismatch>& kept_;
};

}  // namespace rehearse
