// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <rehearse/compile/backend.h>
#include <rehearse/compile/explanation.h>

#include "compile/arguments/input_buffer.h"
#include "compile/captures/capture.h"

namespace rehearse::compiler {

struct SegmentTree;

// One compilation of a function, with its guards.
struct Entry {
  // Like GuardSet::holds(), for the guards of all paths through the segments.
  bool holds(const LeafList& leaves, const GlobalState& state, GuardFailure* failure = nullptr) const;
  std::size_t paths() const;
  // Runs the graph of an entry without segments on a call for which it holds.
  std::vector<c10::IValue> run(const LeafList& leaves);

  Capture capture;
  CompiledGraph graph;
  InputBuffer inputs = {};
  std::shared_ptr<SegmentTree> segments = {};  // replaces `graph` if the function reads data or has eager regions
  EntryExplanation explanation;
  bool verified = false;
  std::size_t number = 0;  // in order of compilation
};

}  // namespace rehearse::compiler
