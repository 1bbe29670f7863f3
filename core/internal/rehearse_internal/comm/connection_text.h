// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rehearse::comm {

// Why a call failed if `rank` of the world closed its connections: "failed: rank 3 closed the connection".
std::string failed_as_closed_by(int rank);

// The inverse: the rank in a text that contains failed_as_closed_by(), perhaps of an error that the program made from
// ours; nullopt if the text has none.
std::optional<int> closed_by(std::string_view text);

}  // namespace rehearse::comm
