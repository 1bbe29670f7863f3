// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/comm/coalescing.h>

#include <chrono>
#include <iterator>
#include <utility>

namespace rehearse::comm {

void add_part(Operation& whole, Operation part) {
  whole.inputs.append(part.inputs.begin(), part.inputs.end());
  whole.outputs.append(part.outputs.begin(), part.outputs.end());
  if (part.parts.empty()) {
    part.timeout = std::chrono::milliseconds(0);
    whole.parts.push_back(std::move(part));
  } else {
    whole.parts.insert(whole.parts.end(), std::make_move_iterator(part.parts.begin()),
                       std::make_move_iterator(part.parts.end()));
  }
}

}  // namespace rehearse::comm
