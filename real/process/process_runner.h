// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include <rehearse/job/runner.h>
#include <rehearse_internal/job/launched.h>

namespace rehearse::real {

// Runs this process's one rank on the calling thread, without an executor. c10d's own back ends carry out the calls of
// its groups.
class ProcessRunner final : public Runner {
 public:
  explicit ProcessRunner(const LaunchedProcess& process) : process_(process) {}

  std::unique_ptr<RunRecord> run(const RunRequest& request, const JobBody& body, const ShowProgress& show) override;

 private:
  const LaunchedProcess process_;
};

}  // namespace rehearse::real
