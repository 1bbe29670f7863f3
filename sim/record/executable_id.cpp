// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/exec/build_id.h>
#include <rehearse_internal/sim/run_log.h>

namespace rehearse::sim {

std::string executable_build_id() {
  const std::string id = exec::executable_build_id();
  return id.empty() ? "none" : id;
}

}  // namespace rehearse::sim
