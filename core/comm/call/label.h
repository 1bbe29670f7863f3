// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>

#include <rehearse_internal/comm/mismatch.h>
#include <rehearse_internal/comm/operation.h>

namespace rehearse::comm {

// The label and the library's name for the payload: `fc1.weight`. Long texts are cut in the middle. Empty if there is
// none.
std::string label_of(const Operation& call);

// Shows two different labels from the end of their common start on, because they might look alike if cut at the end.
std::optional<Mismatch::Field> label_difference(const Operation& first, const Operation& second);

}  // namespace rehearse::comm
