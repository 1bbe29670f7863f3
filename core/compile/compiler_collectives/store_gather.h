// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace rehearse::compiler {

// Gathers messages through the store, for groups whose back end for CPU tensors is missing or cannot create subgroups.
// The n-th gather() of one rank is matched with the n-th gather() of the others. The store keeps the count, so all
// objects with the same name share it.
class StoreGather {
 public:
  // `name`: prefix of all keys. Throws CompileError if the group has no store.
  StoreGather(c10::intrusive_ptr<c10d::Store> store, std::string name, int rank, int size);

  // Returns the payloads of all ranks, by rank. Blocks until all have arrived or the store's timeout ends. Throws
  // CompileError if another rank is at another step or its message is damaged, and what the store throws.
  std::vector<std::string> gather(const std::string& payload, const std::string& step);

 private:
  std::string key(int rank, std::int64_t number) const;

  const c10::intrusive_ptr<c10d::Store> store_;
  const std::string name_;
  const int rank_, size_;
};

}  // namespace rehearse::compiler
