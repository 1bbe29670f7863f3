// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "explain/store_diary.h"

namespace rehearse::sim {

// A rank's handle of the store that writes into a diary what it does with keys. Blocks and throws as the one below. May
// outlive its world.
class WatchedStore final : public c10d::Store {
 public:
  WatchedStore(c10::intrusive_ptr<c10d::Store> below, std::shared_ptr<StoreDiary> diary)
      : below_(std::move(below)), diary_(std::move(diary)) {}

  c10::intrusive_ptr<c10d::Store> clone() override;
  const std::chrono::milliseconds& getTimeout() const noexcept override { return below_->getTimeout(); }
  void setTimeout(const std::chrono::milliseconds& timeout) override { below_->setTimeout(timeout); }

  using Store::set;
  void set(const std::string& key, const std::vector<std::uint8_t>& value) override;
  using Store::compareSet;
  std::vector<std::uint8_t> compareSet(const std::string& key, const std::vector<std::uint8_t>& expected,
                                       const std::vector<std::uint8_t>& desired) override;
  std::vector<std::uint8_t> get(const std::string& key) override;
  std::int64_t add(const std::string& key, std::int64_t amount) override;
  bool deleteKey(const std::string& key) override;
  bool check(const std::vector<std::string>& keys) override;
  std::int64_t getNumKeys() override { return below_->getNumKeys(); }
  void append(const std::string& key, const std::vector<std::uint8_t>& value) override;
  std::vector<std::vector<std::uint8_t>> multiGet(const std::vector<std::string>& keys) override;
  void multiSet(const std::vector<std::string>& keys, const std::vector<std::vector<std::uint8_t>>& values) override;
  bool hasExtendedApi() const override { return below_->hasExtendedApi(); }
  std::vector<std::string> listKeys() override { return below_->listKeys(); }
  void queuePush(const std::string& key, const std::vector<std::uint8_t>& value) override;
  std::vector<std::uint8_t> queuePop(const std::string& key, bool block) override;
  std::int64_t queueLen(const std::string& key) override { return below_->queueLen(key); }
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override;

 private:
  template <class Wait>
  auto waiting(const std::vector<std::string>& keys, const Wait& wait);

  const c10::intrusive_ptr<c10d::Store> below_;
  const std::shared_ptr<StoreDiary> diary_;
};

}  // namespace rehearse::sim
