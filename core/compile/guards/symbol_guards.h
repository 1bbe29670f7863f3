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

// Where the value of a symbol's source is found in a call.
struct SymbolPlace {
  std::uint32_t leaf = 0;       // a tensor, or a symbolic integer
  std::int32_t dimension = -1;  // -1: the integer itself
  bool is_used = true;          // off: by nothing that was captured, so that its value does not matter
};

// What a shape environment asks of the sizes and integers of a call.
class SymbolGuards {
 public:
  SymbolGuards() = default;
  // `places`: of each of the environment's sources, in order.
  SymbolGuards(std::vector<SymbolPlace> places, std::shared_ptr<const shapes::ShapeEnv> shapes);

  // What was asked of the environment since, as when a backward was recorded, is a guard too from now on.
  void renew();

  // The leaves have passed all other guards.
  bool holds(const LeafList& leaves, GuardFailure* failure = nullptr) const;

  // The symbols with their sources and what is asked of them, for people. Slow: looks up lines.
  std::vector<std::string> texts() const;

  const std::vector<SymbolPlace>& places() const noexcept { return places_; }

 private:
  std::int64_t value_of(std::size_t source, const LeafList& leaves) const;

  std::vector<SymbolPlace> places_;
  // Of a source that does not matter: a source of the same symbol that does; or its own index: the hint will do.
  std::vector<std::uint32_t> twins_;
  std::vector<std::int64_t> hints_;
  std::shared_ptr<const shapes::ShapeEnv> shapes_;
  shapes::GuardProgram program_;
};

}  // namespace rehearse::compiler
