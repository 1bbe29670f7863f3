// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/recording/storage_sizes.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include <rehearse_internal/capture/errors.h>
#include <rehearse_internal/capture/fake_tensor.h>
#include <rehearse_internal/parallel/sharded_units.h>

namespace rehearse::capture {
namespace {

// FullyShardedDataParallel frees and refills this memory between operators, so its size during the capture means
// nothing.
void refuse_sharded(const at::Tensor& real, const exec::CallSite& where) {
  const auto* const units = parallel::ShardedUnits::current();
  const auto* const parameter = units != nullptr ? units->find(real.storage().unsafeGetStorageImpl()) : nullptr;
  if (parameter == nullptr) return;
  throw NotCapturable(fmt::format("the function asks for the storage of parameter \"{}\" of {}, which "
                                  "FullyShardedDataParallel frees and fills",
                                  parameter->name, units->text_of(parameter->unit)),
                      "Ask for its sizes.", where);
}

}  // namespace

bool StorageSizes::was_resized(const at::Tensor& fake) const {
  const auto* const storage = fake.storage().unsafeGetStorageImpl();
  return std::any_of(resized_.begin(), resized_.end(),
                     [&](const c10::Storage& each) { return each.unsafeGetStorageImpl() == storage; });
}

void StorageSizes::note_resized(const at::Tensor& fake) {
  if (!was_resized(fake)) resized_.push_back(fake.storage());
}

Inputs::Source* StorageSizes::source_with_storage(const at::Tensor& fake) {
  if (Inputs::Source* const own = inputs_.find(fake_id(fake))) return own;
  Inputs::Source* found = nullptr;
  inputs_.for_each([&](const at::Tensor& input, const at::Tensor&) {
    if (found == nullptr && share_storage(input, fake)) found = inputs_.find(fake_id(input));
  });
  return found;
}

c10::SymInt StorageSizes::bytes_of(const at::Tensor& fake, const exec::CallSite& where) {
  Inputs::Source* const source = was_resized(fake) ? nullptr : source_with_storage(fake);
  if (source == nullptr || source->input.is_made_inside || !source->real.has_storage()) {
    return fake.storage().sym_nbytes();
  }
  refuse_sharded(source->real, where);
  if (source->input.kind == GraphInput::Kind::Captured) inputs_.node_of(*source);  // an input, so a guard checks it
  const auto bytes = static_cast<std::int64_t>(source->real.storage().nbytes());
  const bool is_full = bytes_of_elements(spec_of(source->real)) == bytes;
  asked_.push_back({source->real, is_full ? std::nullopt : std::optional(bytes)});
  if (!is_full) return bytes;
  source->fake.sym_sizes();  // marks the sizes as read, because the answer depends on them
  return bytes_of_elements(spec_of(source->fake));
}

}  // namespace rehearse::capture
