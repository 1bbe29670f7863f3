// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>
#include <string>

namespace rehearse {

// "a.weight, b.weight". If there are more than eight names, shows the first eight: "a, b, c, d, e, f, g, h and 3 more".
std::string some_names(std::span<const std::string> names);

}  // namespace rehearse
