// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "compile/call.h"
#include "compile/segments/segmented_capture.h"

namespace rehearse::compiler {

// The code was refused, for all calls or for this one. `served`: the results, if it has run nevertheless.
struct Refused {
  std::optional<CallResult> served = std::nullopt;
};

// Compiles the code of one call, which may read data, and serves calls of entries with segments.
class SegmentedCompiler {
 public:
  explicit SegmentedCompiler(Call& call) : call_(call) {}

  struct Made {
    std::optional<Entry> entry;        // nothing: the code was refused
    std::optional<CallResult> served;  // the results, if the code has run meanwhile
  };
  // Compiles the code of a call that no entry serves.
  Made compile();

  // Serves a call with an entry that has segments. Compiles a missing branch. `verifies`: runs the code in any case,
  // and throws StaleCapture if it differs from the tree.
  Answer serve(Entry& hit, bool verifies);

  // Runs the code under the tracer, and compares it with the tree. The Capture lacks a module only if
  // segmented.capture.has_ended().
  std::variant<Capture, Refused> capture(const std::vector<LeafShape>& shape, Segmented& segmented);
  // The settings with which a SegmentedCapture compiles segments. Use growing_owner() to add to an existing tree,
  // within the recompile limit.
  SegmentOwner owner() const;
  SegmentOwner growing_owner() const;
  // make_entry() makes a new entry from a capture that was cut into segments, or returns nothing if that is impossible.
  // add_path() adds the capture's path, if it is new, to an existing entry.
  std::optional<Entry> make_entry(Capture captured, Segmented& segmented);
  Answer add_path(Entry& entry, Capture captured, Segmented& segmented);

  // Refuses the function if another rank's refusal says so (Agreement::refusal()).
  void heed_refusal();

 private:
  std::variant<Capture, Refused> try_capture(const std::vector<LeafShape>& shape, Segmented& segmented);
  void run_once(const std::string& refusal, bool keeps_tensors, Segmented& segmented);
  void give_up(const std::exception& error, Segmented& segmented);
  void require_repeatable(const SegmentRun& run);
  Refused run_rest(const std::vector<LeafShape>& shape, Segmented& segmented);
  CallResult note_unrepeatable(Capture made, Segmented& segmented);
  std::optional<CallResult> run_compiled(const Entry& hit, SegmentRun& run);
  Answer run_live(Entry& hit, Segmented& segmented);
  void refuse(const std::string& why) { call_.cache.entries.refuse(why); }

  Call& call_;
};

}  // namespace rehearse::compiler
