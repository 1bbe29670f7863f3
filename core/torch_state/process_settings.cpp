// SPDX-License-Identifier: BSD-3-Clause
#include "torch_state/process_settings.h"

#include <atomic>
#include <stdexcept>

#include <ATen/Parallel.h>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>

namespace rehearse::torch_state {
namespace {

std::atomic<bool> are_changed{false};

}  // namespace

ProcessSettings::ProcessSettings(bool single_threaded_ops) {
  if (are_changed.exchange(true)) throw std::logic_error("rehearse: there already is a TorchRankState");
  c10d::set_thread_isolation_mode(true);
  if (!single_threaded_ops) return;
  threads_before_ = at::get_num_threads();
  at::set_num_threads(1);
}

ProcessSettings::~ProcessSettings() {
  if (threads_before_ > 0) at::set_num_threads(threads_before_);
  c10d::set_thread_isolation_mode(false);
  are_changed = false;
}

}  // namespace rehearse::torch_state
