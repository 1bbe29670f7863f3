// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rehearse::parallel {

// What a compiler must know of data parallelism to cut a graph where gradient buckets end.
struct DdpBuckets {
  std::int64_t bucket_bytes_cap = 25 * 1024 * 1024;
  // Bytes of the buckets in the order in which they are reduced, from the graph's end on; the last one counts for all
  // that follow. Empty: 1 MiB, or bucket_bytes_cap where that is less, and then bucket_bytes_cap, as in PyTorch's
  // DDPOptimizer.
  std::vector<std::int64_t> caps = {};
  std::vector<std::string> ignored = {};  // parameters and buffers of the wrapped module, by name
};

// Says that the calling fiber is in the forward of a data-parallel module, as PyTorch's _inside_ddp_forward does: what
// is compiled meanwhile is split by its buckets. Scopes nest, the innermost counts.
class ActiveDdp {
 public:
  // `buckets` must outlive the scope.
  explicit ActiveDdp(const DdpBuckets& buckets);
  ~ActiveDdp();
  ActiveDdp(const ActiveDdp&) = delete;
  ActiveDdp& operator=(const ActiveDdp&) = delete;

  // Null outside of such a forward.
  static const DdpBuckets* current() noexcept;

 private:
  const DdpBuckets* before_;
};

// Remembers the first data-parallel forward that the calling fiber begins while it lives: that of code which is
// captured and wraps its module itself. Recorders nest; each sees its own.
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
