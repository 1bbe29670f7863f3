// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/comm/call_label.h>

#include <atomic>

#include <rehearse_internal/exec/this_rank.h>
#include <rehearse_internal/exec/world_local.h>

namespace rehearse::comm {
namespace {

Communicators* world_of_caller() noexcept {
  return exec::this_rank::is_fiber() ? exec::WorldLocal<Communicators>::find() : nullptr;
}

std::atomic<LabelKeeper*> keeper_of_process = nullptr;

LabelKeeper* process_of_caller() noexcept { return exec::this_rank::is_fiber() ? nullptr : keeper_of_process.load(); }

}  // namespace

LabelKeeper::Lent::Lent(LabelKeeper& keeper) noexcept { keeper_of_process = &keeper; }
LabelKeeper::Lent::~Lent() { keeper_of_process = nullptr; }

const std::string* current_label() noexcept {
  if (const auto* const process = process_of_caller()) return process->label();
  const Communicators* const world = world_of_caller();
  return world != nullptr ? world->label(exec::this_rank::rank()) : nullptr;
}

LabelScope::LabelScope(const std::string& label)
    : world_(world_of_caller()), process_(process_of_caller()), before_(current_label()) {
  if (world_ != nullptr) world_->set_label(exec::this_rank::rank(), world_->kept_label(label));
  if (process_ != nullptr) process_->set_label(process_->kept_label(label));
}

LabelScope::~LabelScope() {
  if (world_ != nullptr) world_->set_label(exec::this_rank::rank(), before_);
  if (process_ != nullptr) process_->set_label(before_);
}

}  // namespace rehearse::comm
