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

// The inputs of a world's all-reduces, recorded if a checker needs them to trace a wrong gradient back to its parts.
// Keeps copies of the latest inputs, up to 256 MiB. Not thread safe.
class Reductions {
 public:
  struct Call {
    std::string title;  // `allreduce #3 on group "world"`
    exec::CallSite where;
    std::vector<int> ranks;
    std::vector<at::Tensor> inputs;  // by rank; add() copies them; they are also the outputs
    bool is_mean = false;            // otherwise a sum
    bool is_bucket = false;          // a bucket of DDP, which divides by the number of ranks before the sum
  };
  // Call it before the bytes move, while an Unwatched lives.
  void add(const Call& call);

  // The parts of a gradient: for each rank a one-dimensional tensor of doubles. They add up to the gradient.
  struct Parts {
    std::vector<int> ranks;
    std::vector<at::Tensor> parts;
    // True: the gradient is the mean of what the ranks computed, even if a rank divided before the all-reduce. False:
    // it is the sum.
    bool is_mean = false;
    bool is_bucket = false;  // as in Call
  };
  // Finds the last all-reduce whose result, or a piece of it, is `gradient` (one-dimensional, doubles), either as it is
  // or divided by the number of ranks. Returns nullopt if there is none.
  std::optional<Parts> parts_of(const at::Tensor& gradient) const;

  // The recorded all-reduces since the rank's last begin() whose input on this rank had the memory of `gradient`; with
  // their call sites.
  std::vector<std::string> calls_on(int rank, const at::Tensor& gradient) const;
  void begin(int rank) { begun_[rank] = number_; }

 private:
  struct Memory {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;  // prevents reuse of the address
    const void* begin = nullptr;
  };
  struct Kept {
    std::uint64_t number = 0;
    std::string title;
    exec::CallSite where;
    std::vector<int> ranks;
    std::vector<at::Tensor> parts;  // copies
    std::vector<Memory> memory;     // where each part was
    double factor = 1;              // applies to the sum of the parts
    bool is_bucket = false;
  };

  std::deque<Kept> kept_;  // oldest first
  std::size_t bytes_ = 0;
  std::uint64_t number_ = 0;
  std::map<int, std::uint64_t> begun_;  // by rank
};

}  // namespace rehearse::checks
