// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/ivalue.h>

#include <rehearse/graph/graph_module.h>

#include "compile/partitions/layout_fit.h"

namespace rehearse::compiler {

// What a piece takes for granted of the layout of an input.
enum class BorderLayout {
  Guarded,   // it is an argument, and guards have compared it
  Copied,    // one that lies otherwise is copied: nothing else that is still to be used shares its memory
  Required,  // one that lies otherwise is an error
};

// What a piece of a function was compiled for, compared with the tensors that come to it from other pieces. A piece
// whose input requires grad, though it was captured without, would lose that gradient without a word; one whose input
// lies in memory otherwise may read its elements in another order.
class BorderCheck {
 public:
  // By placeholder.
  using LayoutOf = std::function<BorderLayout(std::size_t placeholder)>;
  // What the piece was compiled for; null: what the graph's metadata say.
  using CompiledFor = std::function<const graph::TensorMeta*(std::size_t placeholder)>;

  BorderCheck() = default;
  // Checks the placeholders of `piece`, except parameters, which guards cover. Messages call the piece `name`.
  BorderCheck(const graph::GraphModule& piece, std::string name, const LayoutOf& layout_of,
              const CompiledFor& compiled_for = {});

  // Throws BorderMismatch for the first tensor of another dtype, size or layout, or which requires grad and should not,
  // or the other way round; without grad mode that does not matter. `values`: of the placeholders, in order. Copies
  // what is to be copied, in `values`, and gives which these are.
  std::vector<std::size_t> fit(std::vector<c10::IValue>& values) const;

 private:
  struct Expected {
    std::size_t at = 0;  // of the placeholder
    graph::TensorMeta meta;
    std::string value;  // the node's name
    std::shared_ptr<const graph::Origin> origin;
    BorderLayout layout = BorderLayout::Guarded;
  };

  void check(const Expected& expected, const at::Tensor& tensor, const std::vector<c10::IValue>& values) const;
  // Whether the tensor is to be copied to `place`.
  bool lies_otherwise(const Expected& expected, const at::Tensor& tensor, const std::vector<c10::IValue>& values,
                      PlaceInMemory& place) const;
  [[noreturn]] void fail(const Expected& expected, const std::string& captured, const std::string& found) const;

  std::string name_;
  std::vector<Expected> tensors_;
  SymbolSources symbols_;
};

}  // namespace rehearse::compiler
