// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/forwarding_store.h"
#include "store_faults.h"

namespace rehearse::sim {

// A rank's handle of the store in a world with faults. Faults act before and after each call of the store below. Blocks
// and throws as that store and StoreFaults::before() do.
class FaultyStore final : public ForwardingStore {
 public:
  FaultyStore(c10::intrusive_ptr<c10d::Store> below, std::shared_ptr<StoreFaults> faults);

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
  std::int64_t getNumKeys() override;
  void append(const std::string& key, const std::vector<std::uint8_t>& value) override;
  std::vector<std::vector<std::uint8_t>> multiGet(const std::vector<std::string>& keys) override;
  void multiSet(const std::vector<std::string>& keys, const std::vector<std::vector<std::uint8_t>>& values) override;
  std::vector<std::string> listKeys() override;
  void queuePush(const std::string& key, const std::vector<std::uint8_t>& value) override;
  std::vector<std::uint8_t> queuePop(const std::string& key, bool block) override;
  std::int64_t queueLen(const std::string& key) override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override;

 private:
  // `timeout`: the call's own; empty: the store's.
  template <class Call>
  auto meet(std::string_view name, const std::vector<std::string>& keys, const Call& call,
            std::optional<std::chrono::milliseconds> timeout = {});

  const std::shared_ptr<StoreFaults> faults_;
};

}  // namespace rehearse::sim
