// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>

#include <ATen/core/Tensor.h>

#include <rehearse/exec/call_site.h>

namespace rehearse::checks {

// The place where a NaN or an Inf arose.
struct Origin {
  int rank = -1;
  std::string kind;      // "NaN", "Inf"
  std::string made_by;   // "aten::log", "allreduce #3 on group "world""
  std::string behind;    // further facts: "in the backward of LogBackward0, under label "head""; may be empty
  exec::CallSite where;  // empty: unknown
  std::string way;       // the collectives that spread it: "allreduce #5 on group "world" to rank 2"

  // "made by aten::log on rank 1 at train.cpp:31 in loss, brought by allreduce #5 on group "world" to rank 2"
  std::string text() const;
};
using OriginPtr = std::shared_ptr<const Origin>;

// Knows which memory of a world's ranks contains a NaN or an Inf, and where the value arose, as far as operators and
// collectives were watched. Identifies memory by its storage; the entry of a destroyed storage does not count. Not
// thread safe.
class Origins {
 public:
  // Null if no origin is known.
  OriginPtr of(const at::Tensor& tensor) const;
  void set(const at::Tensor& tensor, OriginPtr origin);
  // Call it if `tensor` is finite. If `tensor` covers its whole storage, forgets the storage's origin.
  void clear(const at::Tensor& tensor);

 private:
  struct Entry {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;  // prevents reuse of the address
    OriginPtr origin;
  };
  void drop_gone();

  // Looked up by address; answers do not depend on the order.
  std::unordered_map<const c10::StorageImpl*, Entry> entries_;
  std::size_t drop_at_ = 1024;
};

}  // namespace rehearse::checks
