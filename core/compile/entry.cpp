// SPDX-License-Identifier: BSD-3-Clause
#include "compile/entry.h"

#include <algorithm>

#include "compile/segments/segment_tree.h"

namespace rehearse::compiler {

bool Entry::holds(const LeafList& leaves, const GlobalState& state, GuardFailure* failure) const {
  if (!capture.guards.holds(leaves, state, failure)) return false;
  return !segments || std::all_of(segments->guards.begin(), segments->guards.end(),
                                  [&](const GuardSet& guards) { return guards.holds(leaves, state, failure); });
}

std::size_t Entry::paths() const { return 1 + (segments ? segments->guards.size() : 0); }

}  // namespace rehearse::compiler
