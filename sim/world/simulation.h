// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include <rehearse/exec/oracle.h>
#include <rehearse/sim/world.h>

#include "record/run_record.h"

namespace rehearse::sim {

using ShowProgress = std::function<void(std::int64_t done, std::int64_t total, std::string_view text)>;

// Runs `body` once on every rank of a fresh world. Throws what the oracle throws.
std::unique_ptr<RunRecord> simulate(const WorldOptions& options, Oracle& oracle, const World::Body& body,
                                    const ShowProgress& show);

}  // namespace rehearse::sim
