// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/parallel/active_ddp.h>

#include <utility>

#include <rehearse/parallel/ddp_options.h>
#include <rehearse_internal/exec/fiber_local.h>

namespace rehearse::parallel {
namespace {

const exec::FiberLocal<const DdpBuckets*> active_ddp;
const exec::FiberLocal<DdpRecorder*> ddp_recorder;

}  // namespace

DdpBuckets buckets_of(const DistributedDataParallelOptions& options) {
  DdpBuckets buckets{.ignored = options.parameters_to_ignore};
  const auto bytes_of = [](double mebibytes) { return static_cast<std::int64_t>(mebibytes * 1024.0 * 1024.0); };
  if (options.bucket_cap_mb) buckets.bucket_bytes_cap = bytes_of(*options.bucket_cap_mb);
  if (!options.bucket_cap_mb_list.empty()) {
    for (const double mebibytes : options.bucket_cap_mb_list) buckets.caps.push_back(bytes_of(mebibytes));
  } else if (options.first_bucket_bytes) {
    buckets.caps = {*options.first_bucket_bytes, buckets.bucket_bytes_cap};
  }
  return buckets;
}

ActiveDdp::ActiveDdp(const DdpBuckets& buckets) : before_(std::exchange(active_ddp.get(), &buckets)) {
  DdpRecorder* const* recorder = ddp_recorder.find();
  if (recorder && *recorder && !(*recorder)->seen_) (*recorder)->seen_ = buckets;
}
ActiveDdp::~ActiveDdp() { active_ddp.get() = before_; }

const DdpBuckets* ActiveDdp::current() noexcept {
  const DdpBuckets* const* active = active_ddp.find();
  return active ? *active : nullptr;
}

DdpRecorder::DdpRecorder() : before_(std::exchange(ddp_recorder.get(), this)) {}
DdpRecorder::~DdpRecorder() { ddp_recorder.get() = before_; }

}  // namespace rehearse::parallel
