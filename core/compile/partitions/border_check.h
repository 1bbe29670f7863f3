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

// The requirement of a piece on the layout of an input.
enum class BorderLayout {
  Guarded,   // not compared: guards have compared it already, or a copy must not replace the tensor (an autograd leaf)
  Copied,    // a tensor with another layout is copied; possible because no value that is used later shares its memory
  Required,  // another layout is an error
};

// Compares the tensors that a piece gets from other pieces with those for which the piece was compiled. Without this
// check, a piece whose input requires grad, but did not at capture, would silently lose the gradient. A piece whose
// input has another layout might read the elements in another order.
class BorderCheck {
 public:
  using LayoutOf = std::function<BorderLayout(std::size_t placeholder)>;
  // The metadata for which the piece was compiled; null: the metadata in the graph.
  using CompiledFor = std::function<const graph::TensorMeta*(std::size_t placeholder)>;

  BorderCheck() = default;
  // Checks the placeholders of `piece`, except parameters, which guards cover. `name`: the piece's name in messages.
  BorderCheck(const graph::GraphModule& piece, std::string name, const LayoutOf& layout_of,
              const CompiledFor& compiled_for = {});

  // `values`: one for each placeholder, in order. Throws BorderMismatch for the first tensor whose dtype or size is
  // another than at capture. If grad mode is on, requires_grad must agree, too. Replaces a BorderLayout::Copied tensor
  // that has another layout by a copy. Throws BorderMismatch if the layout for the copy is unknown, or if a
  // BorderLayout::Required tensor has another layout. Returns the positions of the copies.
  std::vector<std::size_t> fit(std::vector<c10::IValue>& values) const;

 private:
  struct Expected {
    std::size_t at = 0;  // index of the placeholder
    graph::TensorMeta meta;
    std::string value;  // the node's name
    std::shared_ptr<const graph::Origin> origin;
    BorderLayout layout = BorderLayout::Guarded;
  };

  void check(const Expected& expected, const at::Tensor& tensor, const std::vector<c10::IValue>& values) const;
  // True if the tensor must be copied to `place`.
  bool has_other_layout(const Expected& expected, const at::Tensor& tensor, const std::vector<c10::IValue>& values,
                        PlaceInMemory& place) const;
  [[noreturn]] void fail(const Expected& expected, const std::string& captured, const std::string& found) const;

  std::string name_;
  std::vector<Expected> tensors_;
  SymbolSources symbols_;
};

}  // namespace rehearse::compiler
