// SPDX-License-Identifier: BSD-3-Clause
#include "differential/program/operation.h"

#include <algorithm>
#include <stdexcept>

namespace rehearse_test::differential {

Operations joined(std::initializer_list<std::span<const Operation>> parts) {
  Operations all;
  for (const std::span<const Operation> part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

const std::vector<Operation>& operations() {
  static const std::vector<Operation> all = [] {
    std::vector<Operation> table;
    for (Operations (*const part)() :
         {pointwise_operations, reducing_operations, matrix_operations, view_operations, changing_operations,
          filling_operations, joining_operations, indexing_operations, drawing_operations, control_operations,
          module_operations, mode_operations, collective_operations, keeping_operations, state_operations,
          unguarded_operations, loss_operations}) {
      for (Operation& each : part()) table.push_back(std::move(each));
    }
    return table;
  }();
  return all;
}

std::vector<std::string> families() {
  std::vector<std::string> names;
  for (const Operation& each : operations()) {
    if (std::find(names.begin(), names.end(), each.family) == names.end()) names.emplace_back(each.family);
  }
  return names;
}

const Operation& operation(const std::string& name) {
  for (const Operation& each : operations()) {
    if (each.name == name) return each;
  }
  throw std::invalid_argument("no operation is called " + name);
}

}  // namespace rehearse_test::differential
