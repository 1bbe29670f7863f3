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

// What an operator gives, told from the sizes of its arguments with symbols' arithmetic: the table of fake/rules. Null
// where there is none. `name` as in OperatorFacts.
Rule find_rule(std::string_view name);

// What a return of an operator's schema says.
struct ReturnFacts {
  bool is_tensor = false;
  bool is_tensor_list = false;
  bool is_argument = false;             // annotated (a!): the argument itself
  std::optional<std::size_t> alias_of;  // the argument that it shares a storage with
};

// What never changes of an operator, looked up once.
struct OperatorFacts {
  c10::OperatorHandle handle;
  std::string name;           // "aten::add.Tensor"
  std::size_t arguments = 0;  // how many
  std::vector<ReturnFacts> returns;
  std::optional<std::size_t> device_argument, layout_argument;
  std::vector<std::size_t> written;  // arguments annotated (a!)
  bool is_composite = false;         // to be taken apart
  bool writes_out = false;           // its results go into `out`, which takes their sizes
  bool has_meta_kernel = false;      // whose results have the sizes that real ones have
  bool is_pointwise = false;
  bool changes_geometry = false;  // t_(), squeeze_(), set_()
  bool is_random = false;
  bool has_data_dependent_size = false;
  Rule rule = nullptr;

  explicit OperatorFacts(const c10::OperatorHandle& op);
};

// The calling fiber's table; valid until the fiber ends.
const OperatorFacts& facts_of(const c10::OperatorHandle& op);

}  // namespace rehearse::capture
