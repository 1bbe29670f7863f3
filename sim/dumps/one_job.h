// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "dumps/dump.h"

namespace rehearse::sim {

// Throws DumpError if the dumps cannot all come from one job: they differ in their version, in the library or back end
// that carried the calls, or in the members of the default group or of a group whose name is a hash of its members.
// `dumps`: at least one.
void require_one_job(const std::vector<Dump>& dumps);

}  // namespace rehearse::sim
