// SPDX-License-Identifier: BSD-3-Clause
#include "region_elsewhere.h"

#include <rehearse/compile/eager_region.h>

namespace rehearse::compiler {
namespace {

std::string identity_of_lambda() {
  const auto region = [] {};
  return TypedRegion<decltype(region)>(region, {}).identity();
}

}  // namespace

std::string identity_of_lambda_elsewhere() { return identity_of_lambda(); }

}  // namespace rehearse::compiler
