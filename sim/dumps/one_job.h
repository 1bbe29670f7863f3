// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "dumps/dump.h"

namespace rehearse::sim {

// Throws DumpError unless the dumps may come from one job. The dumps of one job have the same version, the same library
// and, if they have calls, a common back end. They agree about the members of the default group, and of each group
// whose name is a hash of its members. `dumps`: at least one.
void require_one_job(const std::vector<Dump>& dumps);

}  // namespace rehearse::sim
