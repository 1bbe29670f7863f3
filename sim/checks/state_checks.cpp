// SPDX-License-Identifier: BSD-3-Clause
#include "state_checks.h"

namespace rehearse::sim {

StateChecks::StateChecks(exec::RankExecutor& executor, const checks::AutomaticChecks& options,
                         checks::WorldChecks::Counts& held)
    : of_world_(executor, options, held, [this](int rank) { return label_of(rank); }) {}

comm::Fabric& StateChecks::in_front_of(comm::Fabric& transport) {
  const auto& options = of_world_.automatic();
  if (!options.finite && !options.explain) return transport;
  comm::Fabric& watching = watching_.emplace(transport, of_world_);
  return options.explain ? reductions_.emplace(watching, of_world_.reductions()) : watching;
}

std::string StateChecks::label_of(int rank) const {
  const auto* const label = communicators_ == nullptr ? nullptr : communicators_->label(rank);
  return label == nullptr ? "" : *label;
}

}  // namespace rehearse::sim
