// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

namespace rehearse::real {

// A rank's handle of the job's store that records in the RankNote which keys the rank waits for. A rank that waits in
// the store is blocked in the kernel, where a report could name nothing but poll(). Blocks and throws as
// c10d::PrefixStore does.
class NotedStore final : public c10d::PrefixStore {
 public:
  using PrefixStore::PrefixStore;

  c10::intrusive_ptr<c10d::Store> clone() override;

  std::vector<std::uint8_t> get(const std::string& key) override;
  std::vector<std::vector<std::uint8_t>> multiGet(const std::vector<std::string>& keys) override;
  std::vector<std::uint8_t> queuePop(const std::string& key, bool block) override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override;
};

}  // namespace rehearse::real
