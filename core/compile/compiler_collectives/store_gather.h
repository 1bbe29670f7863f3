// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace rehearse::compiler {

// Where ranks of a group meet that has no back end for tensors of the CPU: in its store. The n-th gather() of one rank
// meets the n-th of the others; the count is kept in the store, so that all meetings of one name share it.
class StoreGather {
 public:
  // `name`: begins all keys. Throws CompileError for a group without store.
  StoreGather(c10::intrusive_ptr<c10d::Store> store, std::string name, int rank, int size);

  // What all ranks gave, by rank. Blocks until all have come, or the store's time limit is over. Throws CompileError
  // where another rank came for another step, and what the store throws.
  std::vector<std::string> gather(const std::string& payload, const std::string& step);

 private:
  std::string key(int rank, std::int64_t number) const;

  const c10::intrusive_ptr<c10d::Store> store_;
  const std::string name_;
  const int rank_, size_;
};

}  // namespace rehearse::compiler
