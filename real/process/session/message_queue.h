// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "process/check/archive.h"

namespace rehearse::real {

// Messages between processes through a store: to each reader in the order in which they were sent. One thread at a
// time; others have a MessageQueue of their own. Throws c10::DistError when the store is gone. Where its host stands
// still, or the network does, a call does not come back.
class MessageQueue {
 public:
  // Its connection is its own.
  explicit MessageQueue(c10d::Store& store) : store_(store.clone()) {}

  static std::string to_rank(int rank) { return "mail/" + std::to_string(rank); }
  static std::string to_coordinator() { return "mail/judge"; }

  void send(const std::string& to, const Bytes& message) { store_->queuePush(to, message); }

  // Blocks until there is a message for `reader`.
  Bytes receive(const std::string& reader);

 private:
  const c10::intrusive_ptr<c10d::Store> store_;
};

}  // namespace rehearse::real
