// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/shapes/attempt.h>

#include <rehearse_internal/exec/fiber_local.h>

namespace rehearse::shapes {
namespace {

const exec::FiberLocal<int> attempts;

}  // namespace

Attempt::Attempt() { ++*attempts; }
Attempt::~Attempt() { --*attempts; }

bool Attempt::in_progress() noexcept {
  const int* const living = attempts.find();
  return living != nullptr && *living > 0;
}

}  // namespace rehearse::shapes
