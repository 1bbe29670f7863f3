// SPDX-License-Identifier: BSD-3-Clause
#include "footprint.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <utility>

#include <c10/util/SmallVector.h>
#include <sys/uio.h>
#include <unistd.h>

namespace rehearse::sim {
namespace {

constexpr std::size_t kRunsMost = 65'536;

// The number of elements in a dimension, and the distance between two of them in bytes.
struct Dimension {
  std::int64_t size;
  std::ptrdiff_t stride;
};

// Adds a run of `run` bytes for each combination of indices into the dimensions from `depth` on.
void add_runs(const std::byte* begin, const std::vector<Dimension>& dimensions, std::size_t depth, std::ptrdiff_t run,
              std::vector<ByteSpan>& runs) {
  if (depth == dimensions.size()) return runs.push_back({begin, begin + run});
  const auto& [size, stride] = dimensions[depth];
  for (std::int64_t i = 0; i < size; ++i) add_runs(begin + i * stride, dimensions, depth + 1, run, runs);
}

std::vector<ByteSpan> runs_of(const at::Tensor& tensor, const ByteSpan& bounds) {
  auto run = static_cast<std::ptrdiff_t>(tensor.element_size());
  std::vector<Dimension> dimensions;  // widest stride first
  for (std::int64_t d = 0; d < tensor.dim(); ++d) {
    if (tensor.size(d) == 1 || tensor.stride(d) == 0) continue;
    dimensions.push_back({tensor.size(d), tensor.stride(d) * run});
  }
  std::ranges::sort(dimensions, [](const auto& a, const auto& b) { return a.stride > b.stride; });
  // Elements that follow each other without gaps are one run.
  while (!dimensions.empty() && dimensions.back().stride == run) {
    run *= dimensions.back().size;
    dimensions.pop_back();
  }
  std::size_t count = 1;
  for (const auto& dimension : dimensions) count *= static_cast<std::size_t>(dimension.size);
  if (count > kRunsMost) return {};
  std::vector<ByteSpan> runs;
  runs.reserve(count);
  add_runs(bounds.begin, dimensions, 0, run, runs);
  // Sort, because overlapping windows, as unfold() makes them, give runs out of order.
  std::ranges::sort(runs, [](const auto& a, const auto& b) { return std::less<>{}(a.begin, b.begin); });
  return runs;
}

constexpr std::size_t kPagesAtOnce = 256;

std::size_t bytes_of_page() noexcept {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

const std::byte* next_page(const std::byte* address) noexcept {
  return address + (bytes_of_page() - reinterpret_cast<std::uintptr_t>(address) % bytes_of_page());
}

}  // namespace

bool overlap(const ByteSpan& a, const ByteSpan& b) noexcept {
  return std::less<>{}(a.begin, b.end) && std::less<>{}(b.begin, a.end);
}

ByteSpan bounds_of(const at::Tensor& tensor) {
  // A device of LibTorch's private type has the host's memory (Python's --cuda=device).
  if (!tensor.defined() || tensor.layout() != c10::kStrided || tensor.numel() == 0 || !tensor.has_storage() ||
      !(tensor.device().is_cpu() || tensor.device().is_privateuseone())) {
    return {};
  }
  const auto* const base = static_cast<const std::byte*>(tensor.storage().unsafeGetStorageImpl()->data());
  if (base == nullptr) return {};
  const auto element = static_cast<std::ptrdiff_t>(tensor.element_size());
  std::int64_t last = 0;
  const auto sizes = tensor.sizes(), strides = tensor.strides();
  for (std::size_t d = 0; d < sizes.size(); ++d) last += (sizes[d] - 1) * strides[d];
  const auto* const begin = base + tensor.storage_offset() * element;
  return {begin, begin + (last + 1) * element};
}

Footprint::Footprint(const at::Tensor& tensor) : bounds_(bounds_of(tensor)) {
  if (bounds_.empty() || tensor.is_non_overlapping_and_dense()) return;
  runs_ = std::make_shared<const std::vector<ByteSpan>>(runs_of(tensor, bounds_));
}

bool overlap(const Footprint& a, const Footprint& b) noexcept {
  if (a.empty() || b.empty() || !overlap(a.bounds(), b.bounds())) return false;
  const auto runs_of_a = a.runs(), runs_of_b = b.runs();
  auto in_a = runs_of_a.begin(), in_b = runs_of_b.begin();
  while (in_a != runs_of_a.end() && in_b != runs_of_b.end()) {
    if (overlap(*in_a, *in_b)) return true;
    std::less<>{}(in_a->end, in_b->end) ? ++in_a : ++in_b;
  }
  return false;
}

// Lets the kernel copy one byte of each page and say how many it copied: then an unmapped page is an error, not a
// signal.
std::size_t readable_bytes(const ByteSpan& bytes) noexcept {
  std::byte copies[kPagesAtOnce];
  iovec pages[kPagesAtOnce];
  for (const auto* address = bytes.begin; address < bytes.end;) {
    std::size_t count = 0;
    for (const auto* page = address; page < bytes.end && count < kPagesAtOnce; page = next_page(page)) {
      pages[count++] = {const_cast<std::byte*>(page), 1};
    }
    const iovec to{copies, count};
    const auto copied = ::process_vm_readv(::getpid(), &to, 1, pages, count, 0);
    if (copied < 0 && errno != EFAULT) return bytes.size();  // this kernel or sandbox does not offer the call
    const auto readable = static_cast<std::size_t>(std::max<ssize_t>(copied, 0));
    if (readable < count) return ByteSpan{bytes.begin, static_cast<const std::byte*>(pages[readable].iov_base)}.size();
    address = next_page(static_cast<const std::byte*>(pages[count - 1].iov_base));
  }
  return bytes.size();
}

}  // namespace rehearse::sim
