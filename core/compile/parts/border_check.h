// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include <ATen/core/ivalue.h>

#include <rehearse/graph/graph_module.h>

namespace rehearse::compiler {

// What a piece of a function was compiled for, compared with the tensors that come to it from other pieces. A piece
// whose input requires grad, though it was captured without, would lose that gradient without a word.
class BorderCheck {
 public:
  BorderCheck() = default;
  // Checks the placeholders of `piece`, except parameters, which guards cover. Messages call the piece `name`.
  BorderCheck(const graph::GraphModule& piece, std::string name);

  // Throws BorderMismatch for the first tensor of another dtype or size, or which requires grad and should not, or the
  // other way round; without grad mode that does not matter. `values`: of the placeholders, in order.
  void check(const std::vector<c10::IValue>& values) const;

 private:
  struct Expected {
    std::size_t at = 0;  // of the placeholder
    graph::TensorMeta meta;
    std::string value;  // the node's name
    std::shared_ptr<const graph::Origin> origin;
  };

  void check(const Expected& expected, const at::Tensor& tensor, const std::vector<c10::IValue>& values) const;
  bool fits(const graph::SymInt& size, std::int64_t found, const std::vector<c10::IValue>& values) const;
  [[noreturn]] void fail(const Expected& expected, const std::string& captured, const std::string& found) const;

  std::string name_;
  std::vector<Expected> tensors_;
  std::map<std::string, std::size_t> symbols_;  // which placeholder is this symbol
};

}  // namespace rehearse::compiler
