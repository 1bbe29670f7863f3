// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace rehearse::real {

// Sends messages between processes through a store. Each reader gets its messages in the order in which they were sent.
// Only one thread at a time may use an object. Throws c10::DistError if the store is gone. If the store's host or the
// network does not respond, a call does not return.
class MessageQueue {
 public:
  // Makes its own connection.
  explicit MessageQueue(c10d::Store& store) : store_(store.clone()) {}

  static std::string to_rank(int rank) { return "mail/" + std::to_string(rank); }
  static std::string to_coordinator() { return "mail/coordinator"; }

  void send(const std::string& to, const std::string& message) {
    store_->queuePush(to, {message.begin(), message.end()});
  }

  // Blocks until there is a message for `reader`.
  std::string receive(const std::string& reader);

 private:
  const c10::intrusive_ptr<c10d::Store> store_;
};

}  // namespace rehearse::real
