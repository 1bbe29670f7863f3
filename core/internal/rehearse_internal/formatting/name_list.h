// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>
#include <string>

namespace rehearse {

// Names as people read them: "a.weight, b.weight"; of more than eight the first: "a, b, c, d, e, f, g, h and 3 more".
std::string some_names(std::span<const std::string> names);

}  // namespace rehearse
