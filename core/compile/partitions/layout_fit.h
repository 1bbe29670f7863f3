// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <rehearse/graph/metadata.h>

namespace rehearse::compiler {

// Finds the values of symbols among the values of a call. An integer that is the symbol takes precedence over the size
// of a tensor.
class SymbolSources {
 public:
  // `meta` describes value number `at` of a call.
  void add(std::size_t at, const graph::ValueMeta& meta);

  // The symbol's value; nothing if none of `values` gives it. `values` may be only the first values of a call.
  std::optional<std::int64_t> find(const std::string& symbol, const std::vector<c10::IValue>& values) const;
  std::optional<std::int64_t> evaluate(const graph::SymInt& number, const std::vector<c10::IValue>& values) const;
  // True if `found`, the sizes of a tensor, are `sizes`. A size with an unknown symbol counts as equal.
  bool fit(const std::vector<graph::SymInt>& sizes, at::IntArrayRef found,
           const std::vector<c10::IValue>& values) const;
  // True if a call has values for all symbols in the tensor's strides and offset.
  bool tell_layout_of(const graph::TensorMeta& meta) const;
  // Positions of the values that give the symbols in the tensor's sizes, strides and offset their values.
  std::set<std::size_t> inputs_for(const graph::TensorMeta& meta) const;

 private:
  struct Source {
    std::size_t at = 0;
    std::optional<std::size_t> dimension = {};  // a tensor's dimension; nothing for an integer
  };
  std::map<std::string, std::vector<Source>> sources_;
};

// The layout of a tensor in its storage. Numbers with a symbol that the call does not have are kUnknown.
struct PlaceInMemory {
  static constexpr std::int64_t kUnknown = -1;
  std::vector<std::int64_t> strides;
  std::int64_t offset = 0;

  bool is_known() const;
};

// "[4, s0]".
std::string text_of(const std::vector<graph::SymInt>& numbers);
// "strides [4, 1] from 0 on".
std::string text_of(const PlaceInMemory& place);

PlaceInMemory place_of(const at::Tensor& tensor);
PlaceInMemory place_of(const graph::TensorMeta& meta, const SymbolSources& symbols,
                       const std::vector<c10::IValue>& values);

// True if the tensor has this layout, as far as it is known. Strides of dimensions with one element do not matter; for
// an empty tensor, no layout matters.
bool lies_at(const at::Tensor& tensor, const PlaceInMemory& place);

// A copy of the tensor with this layout, which must be known. Autograd records the copy if the tensor has a grad_fn.
// Along dimensions with stride 0, copies only the first element.
at::Tensor copy_to(const PlaceInMemory& place, const at::Tensor& tensor);

}  // namespace rehearse::compiler
