// SPDX-License-Identifier: BSD-3-Clause
// Of operators of ours on what a tensor is beside its elements.
#include <rehearse_internal/capture/fake_errors.h>

#include "capture/fake/rules/rule_tables.h"

namespace rehearse::capture {
namespace {

// The storage object is that of all fakes which share it.
Outputs resize_storage(const Call& call) {
  call.tensor(0).storage().unsafeGetStorageImpl()->set_nbytes(call.sym_int(1));
  return {};
}

// Only the tracer makes a symbol of it.
Outputs version(const Call& call) { throw DataDependentRead(call.facts.name, exec::CallSite::capture()); }

constexpr std::pair<const std::string_view, Rule> kStorageRules[] = {
    {"rehearse::resize_storage", resize_storage},
    {"rehearse::version", version},
};

}  // namespace

RuleTable storage_rules() { return kStorageRules; }

}  // namespace rehearse::capture
