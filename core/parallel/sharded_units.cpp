// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/parallel/sharded_units.h>

#include <utility>

#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/exec/fiber_local.h>

namespace rehearse::parallel {
namespace {

const exec::FiberLocal<const ShardedUnits*> units_in_forward;

}  // namespace

void ShardedUnits::add_parameter(const std::string& name, const at::Tensor& parameter) {
  REHEARSE_CHECK(!texts_.empty(), name);
  parameters_.emplace(parameter.storage().unsafeGetStorageImpl(), Parameter{texts_.size() - 1, name});
}

const ShardedUnits::Parameter* ShardedUnits::find(const void* storage) const {
  const auto found = parameters_.find(storage);
  return found == parameters_.end() ? nullptr : &found->second;
}

const ShardedUnits* ShardedUnits::current() noexcept {
  const ShardedUnits* const* units = units_in_forward.find();
  return units != nullptr ? *units : nullptr;
}

const ShardedUnits* ShardedUnits::set_current(const ShardedUnits* units) noexcept {
  return std::exchange(units_in_forward.get(), units);
}

}  // namespace rehearse::parallel
