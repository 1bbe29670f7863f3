// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/compile/partitions/layout_backend.h"
#include "differential/run/observe.h"
#include "differential/run/places.h"

namespace rehearse_test::differential {

// A test runs twins: a program in eager mode, and the same program compiled. Way says how the compiled twin runs. With
// Ranks and Ddp, the eager twin runs in the same way.
enum class Way { Module, Function, FakeDdp, Ranks, Ddp };

struct Setting {
  const char* name;
  Way way = Way::Module;
  const char* backend = "aot_eager";
  std::optional<bool> dynamic = std::nullopt;
  bool behind_read = false;  // a read ends the graph between two statements
  // If set, the back end changes outputs to a layout that the program's seed selects. The value says what the back end
  // states about this layout.
  std::optional<rehearse::test::Statement> layouts = std::nullopt;
  Place place = Place::Plain;  // of each call, in both modes
};

const std::vector<Setting>& settings();

// Begins the kind of a difference that consists in a refusal which docs/COMPILE.md does not list.
inline constexpr const char* kRefused = "is refused: ";

struct Outcome {
  std::optional<Difference> difference;
  int call = -1;                              // the last call that ran; any difference is in this call
  std::string refusal;                        // why the function runs in eager mode; empty if it does not
  bool gives_outside = false;                 // see Net::gave_outside
  std::string eager_error;                    // of the last call
  std::set<std::string> undefined_gradients;  // of parameters and leaves in eager mode, in the last call
  std::int64_t hits = 0, compiles = 0, graphs = 0, eager_calls = 0;
};

// Adapts the program to the setting: adds a read, or leaves out what the setting cannot run.
Program prepared(Program program, const Setting& setting);

// Runs both twins through the calls, until they differ or eager mode throws. `program` must be prepared.
Outcome check(const Program& program, const Setting& setting, const std::vector<CallSpec>& calls);

}  // namespace rehearse_test::differential
