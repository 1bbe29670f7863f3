// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "process/check/archive.h"

namespace rehearse::real {

// Messages between processes through a store: to each reader in the order in which they were sent. One thread at a
// time; others have a Mail of their own. Throws c10::Error when the store is gone.
class Mail {
 public:
  // Its connection is its own.
  explicit Mail(c10d::Store& store) : store_(store.clone()) {}

  static std::string to_rank(int rank) { return "mail/" + std::to_string(rank); }
  static std::string to_judge() { return "mail/judge"; }

  void send(const std::string& to, const Bytes& message) { store_->queuePush(to, message); }

  // The next message for `reader`; nothing when none has come in that time.
  std::optional<Bytes> receive(const std::string& reader, std::chrono::milliseconds within);

 private:
  const c10::intrusive_ptr<c10d::Store> store_;
};

}  // namespace rehearse::real
