// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <list>
#include <optional>
#include <string>
#include <vector>

#include <rehearse_internal/comm/mismatch.h>

#include "dumps/dumped_job.h"
#include "dumps/group_history.h"

namespace rehearse::sim {

// Whether the ranks made their groups alike, as far as the dumps' groups (pg_config) show it.
struct CreationDiagnosis {
  std::optional<comm::Mismatch> mismatch;  // of the earliest group that ranks made differently
  std::vector<std::string> remarks;        // also on differences that may be intended
};

// `groups`: what the dumps tell of the calls on each group.
CreationDiagnosis diagnose_creations(const DumpedJob& job, const std::list<GroupDiagnosis>& groups);

}  // namespace rehearse::sim
