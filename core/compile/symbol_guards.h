// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rehearse/compile/guard_failure.h>
#include <rehearse/compile/leaf.h>
#include <rehearse/shapes/shape_env.h>

namespace rehearse::compiler {

// Where the value of a symbol is found in a call.
struct SymbolPlace {
  std::string symbol;           // "s0"
  std::string name;             // "x.size(0)"
  std::uint32_t leaf = 0;       // a tensor, or a symbolic integer
  std::int32_t dimension = -1;  // -1: the integer itself
};

// What a shape environment asks of the symbols of a call: that each lies in its range, that what shares a symbol is
// equal, and the guards.
class SymbolGuards {
 public:
  SymbolGuards() = default;
  SymbolGuards(const std::vector<SymbolPlace>& sources, const shapes::ShapeEnv& shapes);

  // The leaves have passed all other guards.
  bool holds(const LeafList& leaves, GuardFailure* failure = nullptr) const;

  std::vector<std::string> texts() const;  // for people

 private:
  struct Source {
    std::uint32_t symbol;
    std::uint32_t leaf;
    std::int32_t dimension;
    std::string name;
  };
  struct Symbol {
    std::string name;
    shapes::Range range;
  };

  std::string in_words(const shapes::Condition& condition) const;

  std::vector<Symbol> symbols_;
  std::vector<Source> sources_;
  std::vector<shapes::Guard> guards_;
};

}  // namespace rehearse::compiler
