// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace rehearse::sim {

// A store in front of another one. It forwards hasExtendedApi() and the functions for the timeout, for the list of keys
// and for queues. Derived classes implement the other functions. Blocks and throws as the store below does.
class ForwardingStore : public c10d::Store {
 public:
  explicit ForwardingStore(c10::intrusive_ptr<c10d::Store> below) : below_(std::move(below)) {}

  const std::chrono::milliseconds& getTimeout() const noexcept override { return below_->getTimeout(); }
  void setTimeout(const std::chrono::milliseconds& timeout) override { below_->setTimeout(timeout); }
  bool hasExtendedApi() const override { return below_->hasExtendedApi(); }

  std::int64_t getNumKeys() override { return below_->getNumKeys(); }
  std::vector<std::string> listKeys() override { return below_->listKeys(); }
  void queuePush(const std::string& key, const std::vector<std::uint8_t>& value) override {
    below_->queuePush(key, value);
  }
  std::vector<std::uint8_t> queuePop(const std::string& key, bool block) override {
    return below_->queuePop(key, block);
  }
  std::int64_t queueLen(const std::string& key) override { return below_->queueLen(key); }

 protected:
  const c10::intrusive_ptr<c10d::Store>& below() const noexcept { return below_; }

 private:
  const c10::intrusive_ptr<c10d::Store> below_;
};

}  // namespace rehearse::sim
