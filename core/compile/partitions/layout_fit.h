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

// Where the values of symbols are found in a call: in integers, else in sizes of tensors.
class SymbolSources {
 public:
  // The value #`at` of a call is of this kind.
  void add(std::size_t at, const graph::ValueMeta& meta);

  // None: no value of the call tells. `values` may end before the source.
  std::optional<std::int64_t> find(const std::string& symbol, const std::vector<c10::IValue>& values) const;
  std::optional<std::int64_t> evaluate(const graph::SymInt& number, const std::vector<c10::IValue>& values) const;
  // Whether a call tells all symbols of the tensor's strides and offset.
  bool tell_layout_of(const graph::TensorMeta& meta) const;
  // Which values tell the symbols of the tensor's sizes, strides and offset.
  std::set<std::size_t> places_for(const graph::TensorMeta& meta) const;

 private:
  struct Source {
    std::size_t at = 0;
    std::optional<std::size_t> dimension = {};  // of a tensor; none: an integer
  };
  std::map<std::string, std::vector<Source>> sources_;
};

// How a tensor lies in its storage. What no symbol of the call tells is kUnknown.
struct PlaceInMemory {
  static constexpr std::int64_t kUnknown = -1;
  std::vector<std::int64_t> strides;
  std::int64_t offset = 0;

  bool is_known() const;
};

PlaceInMemory place_of(const graph::TensorMeta& meta, const SymbolSources& symbols,
                       const std::vector<c10::IValue>& values);

// Whether the tensor lies there, as far as that is known. Strides of dimensions with one element say nothing, and
// nothing does of an empty tensor.
bool lies_at(const at::Tensor& tensor, const PlaceInMemory& place);

// A copy of the tensor that lies there, which is known, made under autograd. Dimensions of stride 0 get their first
// element.
at::Tensor copy_to(const PlaceInMemory& place, const at::Tensor& tensor);

}  // namespace rehearse::compiler
