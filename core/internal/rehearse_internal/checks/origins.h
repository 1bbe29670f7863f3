// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>

#include <ATen/core/Tensor.h>

#include <rehearse/exec/call_site.h>

namespace rehearse::checks {

// Where a NaN or an Inf came into being.
struct Origin {
  int rank = -1;
  std::string kind;      // "NaN", "Inf"
  std::string made_by;   // "aten::log", "allreduce #3 on group "world""
  std::string behind;    // what is known besides: "in the backward of LogBackward0, under label "head""; may be empty
  exec::CallSite where;  // empty: not known
  std::string way;       // by which collectives it came further: "allreduce #5 on group "world" to rank 2"

  // "made by aten::log on rank 1 at train.cpp:31 in loss, brought by allreduce #5 on group "world" to rank 2"
  std::string text() const;
};
using OriginPtr = std::shared_ptr<const Origin>;

// Which memory of a world's ranks holds a NaN or an Inf, as far as operators and collectives were watched, and where it
// came from. Memory is known by its storage; entries of storages that are gone are none. Not thread safe.
class Origins {
 public:
  // Null: none is known.
  OriginPtr of(const at::Tensor& tensor) const;
  void set(const at::Tensor& tensor, OriginPtr origin);
  // `tensor` has been found finite: where it is all of its storage, nothing is left there.
  void clear(const at::Tensor& tensor);

 private:
  struct Entry {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;  // keeps the address from being given to another one
    OriginPtr origin;
  };
  void drop_gone();

  std::unordered_map<const c10::StorageImpl*, Entry> entries_;  // looked up by address, never walked for an answer
  std::size_t drop_at_ = 1024;
};

}  // namespace rehearse::checks
