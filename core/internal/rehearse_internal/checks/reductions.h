// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <rehearse/exec/call_site.h>

namespace rehearse::checks {

// What ranks bring to the all-reduces of a world, as far as somebody looks: so that a gradient that is wrong can be
// followed back to its parts. Keeps copies of the last of them, up to 256 MiB. Not thread safe.
class Reductions {
 public:
  struct Call {
    std::string title;  // `allreduce #3 on group "world"`
    exec::CallSite where;
    std::vector<int> ranks;
    std::vector<at::Tensor> inputs;  // by rank; lent, they are also the outputs
    bool is_mean = false;            // else a sum
    bool is_bucket = false;          // of DDP, which divides by the number of ranks before the sum
  };
  // Before the bytes move. Call it in an Unwatched.
  void add(const Call& call);

  // What went into a gradient: by rank, doubles in one dimension, which add up to it.
  struct Parts {
    std::vector<int> ranks;
    std::vector<at::Tensor> parts;
    bool is_mean = false;  // of what the ranks computed, whoever divided; else their sum
  };
  // Of the last all-reduce of which `gradient` (doubles, in one dimension) is the result, or a piece of the result, as
  // it is or divided by the number of ranks. Nothing: none is known.
  std::optional<Parts> parts_of(const at::Tensor& gradient) const;

  // The all-reduces that have worked in the memory of `gradient`, which is that rank's, since its last begin(), with
  // their places.
  std::vector<std::string> calls_on(int rank, const at::Tensor& gradient) const;
  void begin(int rank) { begun_[rank] = number_; }

 private:
  struct Memory {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;  // keeps the address from being given to another one
    const void* begin = nullptr;
  };
  struct Kept {
    std::uint64_t number = 0;
    std::string title;
    exec::CallSite where;
    std::vector<int> ranks;
    std::vector<at::Tensor> parts;  // copies
    std::vector<Memory> memory;     // where each was
    double factor = 1;              // of their sum
    bool is_bucket = false;
  };

  std::deque<Kept> kept_;  // oldest first
  std::size_t bytes_ = 0;
  std::uint64_t number_ = 0;
  std::map<int, std::uint64_t> begun_;  // by rank
};

}  // namespace rehearse::checks
