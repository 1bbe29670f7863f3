// SPDX-License-Identifier: BSD-3-Clause
#include <c10/util/Exception.h>

#include <rehearse/parallel/fsdp_options.h>

namespace rehearse {

UnitPolicy UnitPolicy::named(std::vector<std::string> names) {
  UnitPolicy policy;
  policy.names_ = std::move(names);
  return policy;
}

UnitPolicy UnitPolicy::where(Predicate predicate) {
  TORCH_CHECK_VALUE(predicate, "UnitPolicy::where() was given an empty function");
  UnitPolicy policy;
  policy.predicate_ = std::move(predicate);
  return policy;
}

UnitPolicy UnitPolicy::of_size(std::int64_t least_elements) {
  TORCH_CHECK_VALUE(least_elements > 0, "UnitPolicy::of_size() was given ", least_elements,
                    " elements; a unit has 1 or more");
  UnitPolicy policy;
  policy.least_elements_ = least_elements;
  return policy;
}

}  // namespace rehearse
