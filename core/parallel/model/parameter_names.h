// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <c10/util/Exception.h>

namespace rehearse::parallel {

// The reducer names parameters without gradients by index only. Returns "parameters: encoder.weight,
// head.bias" for the indices in `message` ("did not receive grad for rank 0: 3 5"), empty when there are
// none.
std::string named_parameters_in(std::string_view message, const std::vector<std::string>& names);

// Runs `body`; an error that leaves it carries the names of the parameters that it speaks of.
template <class Body>
decltype(auto) with_parameter_names(const std::vector<std::string>& names, Body&& body) {
  try {
    return body();
  } catch (c10::Error& error) {
    if (auto text = named_parameters_in(error.msg(), names); !text.empty()) error.add_context(std::move(text));
    throw;
  }
}

}  // namespace rehearse::parallel
