// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>

#include <rehearse_internal/comm/mismatch.h>
#include <rehearse_internal/comm/operation.h>

namespace rehearse::comm {

// The name of the call's payload: its label, the name that a library gave to the tensor (`fc1.weight`), or both. Long
// texts are cut in the middle. Empty if the payload has neither.
std::string label_of(const Operation& call);

// The labels of two calls, as a field. Leaves out their common start, because long labels might look alike after they
// have been cut. nullopt if the labels are equal.
std::optional<Mismatch::Field> label_difference(const Operation& first, const Operation& second);

}  // namespace rehearse::comm
