// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>

#include <rehearse_internal/comm/mismatch.h>
#include <rehearse_internal/comm/operation.h>

namespace rehearse::comm {

// What the user and the library call the payload, cut in the middle when it is long: `fc1.weight`; empty: nothing.
std::string label_of(const Operation& call);

// Shows what follows the common start of two different labels: cut at the end, they might look alike.
std::optional<Mismatch::Field> label_difference(const Operation& first, const Operation& second);

}  // namespace rehearse::comm
