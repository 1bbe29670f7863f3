// SPDX-License-Identifier: BSD-3-Clause
// Rules for Rehearse's own operators on a tensor's storage and version.
#include <rehearse_internal/capture/fake_errors.h>
#include <rehearse_internal/shapes/shape_env.h>

#include "capture/fake/rules/rule_tables.h"

namespace rehearse::capture {
namespace {

// All fakes that share the storage share this storage object, so they all see the new size.
Outputs resize_storage(const Call& call) {
  call.tensor(0).storage().unsafeGetStorageImpl()->set_nbytes(call.sym_int(1));
  return {};
}

// A number that only the running program will know.
Outputs version(const Call& call) {
  if (!call.mode.shapes()) throw DataDependentRead(call.facts.name, exec::CallSite::capture());
  return {c10::IValue(call.mode.add_unbacked_number())};
}

constexpr std::pair<const std::string_view, Rule> kStorageRules[] = {
    {"rehearse::resize_storage", resize_storage},
    {"rehearse::version", version},
};

}  // namespace

RuleTable storage_rules() { return kStorageRules; }

}  // namespace rehearse::capture
