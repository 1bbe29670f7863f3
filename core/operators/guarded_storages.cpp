// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/operators/guarded_storages.h>

#include <algorithm>
#include <unordered_map>

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <rehearse_internal/exec/fiber_local.h>

#include "operators/composite.h"

namespace rehearse::operators {
namespace {

constexpr auto kGuardKey = c10::DispatchKey::TESTING_ONLY_GenericMode;
constexpr c10::DispatchKeySet kBelowGuards(c10::DispatchKeySet::FULL_AFTER, kGuardKey);

}  // namespace

struct GuardedStorages::Table {
  struct Entry {
    StorageGuard* guard;
    std::size_t tag;
  };
  std::unordered_map<const c10::StorageImpl*, Entry> entries;  // looked up; never iterated
};

struct TableAccess {
  using Table = GuardedStorages::Table;
  struct UsesOfGuard {
    StorageGuard* guard;
    std::vector<StorageGuard::Use> uses;
  };
  using Found = std::vector<UsesOfGuard>;

  // The guarded storages among an operator's arguments, by guard.
  static Found look(const Table& table, const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) {
    Found found;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const c10::IValue& value = arguments[i];
      if (value.isTensor()) {
        look(table, op, i, *value.unsafeToTensorImpl(), found);
      } else if (value.isTensorList()) {
        for (const at::Tensor& each : value.toTensorVector()) look(table, op, i, *each.unsafeGetTensorImpl(), found);
      } else if (value.isList()) {  // optional tensors
        for (const c10::IValue& each : value.toListRef()) {
          if (each.isTensor()) look(table, op, i, *each.unsafeToTensorImpl(), found);
        }
      }
    }
    return found;
  }

 private:
  static void look(const Table& table, const c10::OperatorHandle& op, std::size_t argument, c10::TensorImpl& tensor,
                   Found& found) {
    if (!tensor.has_storage()) return;
    const auto entry = table.entries.find(tensor.unsafe_storage().unsafeGetStorageImpl());
    if (entry == table.entries.end()) [[likely]]
      return;
    const auto* const alias = op.schema().arguments()[argument].alias_info();
    auto* const guard = entry->second.guard;
    auto of_guard = std::ranges::find_if(found, [&](const auto& each) { return each.guard == guard; });
    if (of_guard == found.end()) of_guard = found.insert(found.end(), {guard, {}});
    of_guard->uses.push_back({entry->second.tag, alias != nullptr && alias->isWrite()});
  }
};

namespace {

const exec::FiberLocal<std::shared_ptr<TableAccess::Table>> tables;

bool has_no_data(c10::DispatchKeySet keys) {
  return keys.has(c10::DispatchKey::Fake) || keys.has(c10::DispatchKey::DeferredInit);
}

// True if no guard may see the operators that the kernel of `op` calls. The kernel needs all its arguments until it
// returns; an operator that it calls uses only some of them, and the guard could free the rest. A composite operator
// only calls other operators, and an operator of another library may call anything. Therefore guards do see the
// operators that these two kinds call.
bool keeps_what_it_uses(const c10::OperatorHandle& op) {
  return !is_composite(op) && op.operator_name().name.starts_with("aten::");
}

void guard_operator(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const auto* const found = tables.find();
  if (found == nullptr || !*found || (*found)->entries.empty() || has_no_data(keys))
    return op.redispatchBoxed(keys & kBelowGuards, stack);
  const auto uses = TableAccess::look(**found, op, torch::jit::last(*stack, op.schema().arguments().size()));
  if (uses.empty()) return op.redispatchBoxed(keys & kBelowGuards, stack);
  for (const auto& [guard, of_guard] : uses) guard->before_use(of_guard, op);
  if (!keeps_what_it_uses(op)) return op.redispatchBoxed(keys & kBelowGuards, stack);
  const c10::impl::ExcludeDispatchKeyGuard whatever_it_calls(kGuardKey);
  op.redispatchBoxed(keys & kBelowGuards, stack);
}

// Registered once per process on first use, so that other programs do not pay for it.
void register_guard_fallback() {
  static torch::Library library(torch::Library::IMPL, "_", kGuardKey, __FILE__, __LINE__);
  static const bool registered = (library.fallback(torch::CppFunction::makeFromBoxedFunction<&guard_operator>()), true);
  static_cast<void>(registered);
}

std::shared_ptr<TableAccess::Table> table_here() {
  auto& table = *tables;
  if (!table) table = std::make_shared<TableAccess::Table>();
  return table;
}

}  // namespace

GuardedStorages::GuardedStorages(StorageGuard& guard) : guard_(&guard), table_(table_here()) {
  register_guard_fallback();
  c10::impl::tls_set_dispatch_key_included(kGuardKey, true);
}

// If another fiber destroys this object, the dispatch key stays set in the fiber that made it; guard_operator() then
// finds an empty table.
GuardedStorages::~GuardedStorages() {
  for (const auto& storage : added_) table_->entries.erase(storage.unsafeGetStorageImpl());
  if (table_->entries.empty() && is_seen_here()) c10::impl::tls_set_dispatch_key_included(kGuardKey, false);
}

bool GuardedStorages::add(const at::Tensor& tensor, std::size_t tag) {
  const c10::Storage& storage = tensor.storage();
  if (!table_->entries.try_emplace(storage.unsafeGetStorageImpl(), Table::Entry{guard_, tag}).second) return false;
  added_.push_back(storage);
  return true;
}

bool GuardedStorages::is_seen_here() const {
  const auto* const found = tables.find();
  return found != nullptr && *found == table_;
}

UnguardedStorages::UnguardedStorages() : key_(kGuardKey) {}

}  // namespace rehearse::operators
