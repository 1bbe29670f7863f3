// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "compile/call.h"
#include "compile/segments/segmented.h"

namespace rehearse::compiler {

// The code was refused, for good or in this call. `served`: it has run all the same.
struct Refused {
  std::optional<CallResult> served = std::nullopt;
};

// Compiles the code of one call, which may read data, and serves calls of code that does, segment by segment.
class SegmentedCompiler {
 public:
  explicit SegmentedCompiler(Call& call) : call_(call) {}

  struct Made {
    std::optional<Entry> entry;        // none: the code was refused
    std::optional<CallResult> served;  // what the code gave where it has run meanwhile
  };
  // Of a call that no entry serves.
  Made compile();

  // Of an entry with segments. A branch that is not there is compiled. `verifies`: the code runs in any case, and one
  // that differs from the tree is StaleCapture.
  Answer serve(Entry& hit, bool verifies);

  // Runs the code under the tracer, beside the tree. Only a graph that has_ended() lacks a module.
  std::variant<Capture, Refused> capture(const std::vector<LeafShape>& shape, Segmented& segmented);
  // What segments are compiled for; `growing_`: by a tree that is there, within the limit of recompilations.
  SegmentOwner owner() const;
  SegmentOwner growing_owner() const;
  // What a capture that was cut is for a new entry, none if there can be none, and for the entry of its tree.
  std::optional<Entry> make_entry(Capture captured, Segmented& segmented);
  Answer add_path(Entry& entry, Capture captured, Segmented& segmented);

 private:
  void give_up(const std::exception& error, const Segmented& segmented);
  Refused run_rest(const std::vector<LeafShape>& shape, Segmented& segmented);
  CallResult note_unrepeatable(Capture made);
  std::optional<CallResult> run_compiled(const Entry& hit, SegmentRun& run);
  Answer run_live(Entry& hit, Segmented& segmented);
  void refuse(const std::string& why) { call_.cache.entries.refuse(why); }

  Call& call_;
};

}  // namespace rehearse::compiler
