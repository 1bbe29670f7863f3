// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <rehearse/exec/call_site.h>
#include <rehearse/shapes/condition.h>
#include <rehearse_internal/shapes/shape_env.h>

namespace rehearse::shapes {

// Everything that a capture assumed about the sizes and integers of its inputs: sources that share a symbol (duck
// shaping) are equal; sizes are at least 2, because 0 and 1 are specialised; the guards hold. Immutable, independent of
// its ShapeEnv, and safe for several fibers. A check never blocks, and usually allocates nothing.
class GuardProgram {
 public:
  GuardProgram() = default;  // without sources: always holds
  explicit GuardProgram(const ShapeEnv& env);

  // The number of values that a check takes: one for each of ShapeEnv::sources(), in that order.
  std::size_t sources() const noexcept { return source_names_.size(); }

  // The number of the first check that fails; nothing if all hold. A guard also fails if it cannot be computed for the
  // values, because it divides by zero or exceeds 64 bits. Throws ShapeError if the number of values is not sources().
  std::optional<std::size_t> first_failure(std::span<const std::int64_t> values) const;
  bool holds(std::span<const std::int64_t> values) const { return !first_failure(values); }

  struct Failure {
    std::string expected;  // in terms of the inputs: "x.size(0) >= 5"
    std::string found;     // "x.size(0) is 3"
    std::string reason;    // why the capture assumed this, such as who asked
    std::string line;      // the user's line during the capture; empty if unknown
    bool specialises = false;
  };
  // Slow, because it looks up lines.
  Failure describe(std::size_t failure, std::span<const std::int64_t> values) const;

  std::size_t size() const noexcept { return checks_.size(); }

 private:
  struct Builder;
  struct Check {
    enum class Kind { Within, SameSource, IsTrue };
    Kind kind = Kind::IsTrue;
    std::uint32_t first = 0;   // Within, SameSource: a source. IsTrue: a register
    std::uint32_t second = 0;  // SameSource: the other source
    std::int64_t lower = 0;    // Within
    std::int64_t upper = 0;
    std::uint32_t steps_end = 0;  // IsTrue: before the check, run the steps from the previous IsTrue's end to here
  };
  struct Step {
    std::uint8_t operation = 0;
    std::uint32_t left = 0;
    std::uint32_t right = 0;
    std::uint32_t result = 0;
  };
  struct Words {
    Condition condition = true;          // the guard's or range's condition
    std::vector<std::uint32_t> sources;  // the sources whose values the check reads
    std::string reason;
    exec::CallSite where;
    bool specialises = false;
  };

  void add_duck_shapes(const ShapeEnv& env);
  void add_ranges(const ShapeEnv& env);
  void add_guards(const ShapeEnv& env);
  bool add_within(const Condition& condition, Words words);
  std::optional<std::size_t> run(std::span<const std::int64_t> values, std::span<std::int64_t> registers) const;
  std::uint32_t source_of(const std::string& symbol) const;
  std::string in_terms_of_sources(const std::string& text) const;

  std::vector<std::string> source_names_;
  std::vector<std::string> symbol_of_source_;
  std::vector<std::int64_t> constants_;  // their registers follow those of the sources
  std::size_t registers_ = 0;
  std::vector<Step> steps_;
  std::vector<Check> checks_;
  std::vector<Words> words_;  // for each check
};

}  // namespace rehearse::shapes
