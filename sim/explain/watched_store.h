// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "explain/store_history.h"
#include "store/forwarding_store.h"

namespace rehearse::sim {

// A rank's handle of the store. It records in a history what the rank does with keys. Blocks and throws as the store
// below does. May outlive its world.
class WatchedStore final : public ForwardingStore {
 public:
  WatchedStore(c10::intrusive_ptr<c10d::Store> below, std::shared_ptr<StoreHistory> history)
      : ForwardingStore(std::move(below)), history_(std::move(history)) {}

  c10::intrusive_ptr<c10d::Store> clone() override;

  using Store::set;
  void set(const std::string& key, const std::vector<std::uint8_t>& value) override;
  using Store::compareSet;
  std::vector<std::uint8_t> compareSet(const std::string& key, const std::vector<std::uint8_t>& expected,
                                       const std::vector<std::uint8_t>& desired) override;
  std::vector<std::uint8_t> get(const std::string& key) override;
  std::int64_t add(const std::string& key, std::int64_t amount) override;
  bool deleteKey(const std::string& key) override;
  bool check(const std::vector<std::string>& keys) override;
  void append(const std::string& key, const std::vector<std::uint8_t>& value) override;
  std::vector<std::vector<std::uint8_t>> multiGet(const std::vector<std::string>& keys) override;
  void multiSet(const std::vector<std::string>& keys, const std::vector<std::vector<std::uint8_t>>& values) override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override;

 private:
  template <class Wait>
  auto waiting(const std::vector<std::string>& keys, const Wait& wait);

  const std::shared_ptr<StoreHistory> history_;
};

}  // namespace rehearse::sim
