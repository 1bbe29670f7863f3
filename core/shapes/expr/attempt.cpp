// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/shapes/attempt.h>

namespace rehearse::shapes {
namespace {

constinit thread_local int attempts = 0;

}  // namespace

Attempt::Attempt() noexcept { ++attempts; }
Attempt::~Attempt() { --attempts; }

bool Attempt::in_progress() noexcept { return attempts > 0; }

}  // namespace rehearse::shapes
