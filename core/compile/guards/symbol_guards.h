// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rehearse/compile/guard_failure.h>
#include <rehearse/compile/leaf.h>
#include <rehearse_internal/shapes/guard_program.h>

namespace rehearse::compiler {

// The position in a call that has the value of a symbol's source.
struct SymbolPosition {
  std::uint32_t leaf = 0;       // a tensor, or a symbolic integer
  std::int32_t dimension = -1;  // -1: the integer itself
  bool is_used = true;          // false: nothing that was captured uses the source, so its value does not matter
};

// The conditions of a shape environment on the sizes and integers of a call.
class SymbolGuards {
 public:
  SymbolGuards() = default;
  // `positions`: one for each source of the environment, in order.
  SymbolGuards(std::vector<SymbolPosition> positions, std::shared_ptr<const shapes::ShapeEnv> shapes);

  // Adds the guards that the environment has received since the construction, for example when a backward was recorded.
  void renew();

  // The leaves must have passed their own guards.
  bool holds(const LeafList& leaves, GuardFailure* failure = nullptr) const;

  // The symbols with their sources and conditions, for messages. Slow, because it looks up lines.
  std::vector<std::string> texts() const;

  const std::vector<SymbolPosition>& positions() const noexcept { return positions_; }

 private:
  std::int64_t value_of(std::size_t source, const LeafList& leaves) const;

  std::vector<SymbolPosition> positions_;
  // By source: the index of the source whose value counts. For a source that something uses, this is its own index. For
  // an unused source, it is the index of a source of the same symbol that something uses. If there is none, it is the
  // unused source's own index, and the hint counts instead of a value.
  std::vector<std::uint32_t> twins_;
  std::vector<std::int64_t> hints_;
  std::shared_ptr<const shapes::ShapeEnv> shapes_;
  shapes::GuardProgram program_;
};

}  // namespace rehearse::compiler
