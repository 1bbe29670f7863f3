// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>

namespace rehearse::capture {

struct Call;
struct Output;
using Rule = std::vector<Output> (*)(const Call&);

// The rule in the tables of fake/rules that computes the results' metadata from the arguments with symbolic arithmetic.
// Null if there is none. `name`: see OperatorFacts::name.
Rule find_rule(std::string_view name);

struct ReturnFacts {
  bool is_tensor = false;
  bool is_tensor_list = false;
  bool is_argument = false;             // annotated (a!): the result is the argument itself
  std::optional<std::size_t> alias_of;  // the argument whose storage the result shares
};

struct OperatorFacts {
  c10::OperatorHandle handle;
  std::string name;           // "aten::add.Tensor"
  std::size_t arguments = 0;  // number of arguments
  std::vector<ReturnFacts> returns;
  std::optional<std::size_t> device_argument, layout_argument;
  std::vector<std::size_t> written;  // arguments annotated (a!)
  bool is_composite = false;         // must be decomposed into its parts
  bool writes_out = false;           // writes its results into `out`, and resizes it
  bool has_meta_kernel = false;      // has a Meta kernel that gives the same layouts as the real kernels
  bool is_pointwise = false;
  bool changes_geometry = false;  // t_(), squeeze_(), set_()
  bool is_random = false;
  bool has_data_dependent_size = false;
  Rule rule = nullptr;

  explicit OperatorFacts(const c10::OperatorHandle& op);
};

// Looks the operator up in the calling fiber's table. The reference is valid until the fiber ends.
const OperatorFacts& facts_of(const c10::OperatorHandle& op);

}  // namespace rehearse::capture
