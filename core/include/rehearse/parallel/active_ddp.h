// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rehearse::parallel {

// The facts about data parallelism that a compiler needs to cut a graph where gradient buckets end.
struct DdpBuckets {
  std::int64_t bucket_bytes_cap = 25 * 1024 * 1024;
  // Caps in bytes for each bucket, in the order of reduction, which starts at the graph's end; the last cap holds for
  // all further buckets. Empty: 1 MiB (or bucket_bytes_cap if that is less) for the first bucket, then
  // bucket_bytes_cap, as in PyTorch's DDPOptimizer.
  std::vector<std::int64_t> caps = {};
  std::vector<std::string> ignored = {};  // names of parameters and buffers of the wrapped module
};

// Marks the calling fiber as being in the forward of a data-parallel module, as PyTorch's _inside_ddp_forward does.
// Code that is compiled meanwhile is split by the buckets of that module. Scopes nest; the innermost counts.
class ActiveDdp {
 public:
  // `buckets` must outlive the scope.
  explicit ActiveDdp(const DdpBuckets& buckets);
  ~ActiveDdp();
  ActiveDdp(const ActiveDdp&) = delete;
  ActiveDdp& operator=(const ActiveDdp&) = delete;

  // The buckets of the innermost scope; null outside of such a forward.
  static const DdpBuckets* current() noexcept;

 private:
  const DdpBuckets* before_;
};

// Records the first data-parallel forward that the calling fiber begins during the recorder's life. Use it for captured
// code that itself calls forward() of a data-parallel module. Recorders nest; only the innermost one records.
class DdpRecorder {
 public:
  DdpRecorder();
  ~DdpRecorder();
  DdpRecorder(const DdpRecorder&) = delete;
  DdpRecorder& operator=(const DdpRecorder&) = delete;

  const std::optional<DdpBuckets>& seen() const noexcept { return seen_; }

 private:
  friend class ActiveDdp;
  std::optional<DdpBuckets> seen_;
  DdpRecorder* before_;
};

}  // namespace rehearse::parallel
