// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace rehearse::compiler {

// EagerRegion::identity() of a region whose function is a lambda in another file.
std::string identity_of_lambda_elsewhere();

}  // namespace rehearse::compiler
