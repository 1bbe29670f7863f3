// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rehearse/compile/callable.h>
#include <rehearse/parallel/active_ddp.h>

#include "compile/capture_call.h"
#include "compile/rank_cache.h"
#include "compile/segments/segment_run.h"

namespace rehearse::compiler {

class SegmentedCapture;
struct Segmented;
struct SegmentOwner;

// callable.cpp has the calls, verify.cpp what runs beside a hit.
class Callable::Impl {
 public:
  Impl(CompileOptions options, std::shared_ptr<torch::nn::Module> module)
      : options_(std::move(options)), module_(std::move(module)) {}

  const Entry* prepare(const LeafList& leaves, UserCode& code);
  Explanation explain() const;
  CompileStats stats() const;

 private:
  // One call that is under way.
  struct Call {
    const LeafList& leaves;
    UserCode& code;
    RankCache& cache;
    GlobalState state;
    std::vector<std::string> sources = {};   // when they are wanted
    std::unique_ptr<Capture> now = nullptr;  // what the code gives, where it has run in this call (Verify::Always)
    bool was_compared = false;               // with other ranks: whether the cache serves it
  };

  RankCache& cache_of_this_rank();
  const RankCache* find_cache() const;

  bool is_to_be_verified(const Entry& entry) const;
  const Entry* verify(Call& call, Entry& hit);
  const Entry* verify_always(Call& call, Entry& hit);
  // `known`: the segmented entry that holds, or null; `shape`: what the call is captured with.
  const Entry* run_verified(Call& call, Entry* known, const std::vector<LeafShape>& shape);
  const Entry* note_verified(Call& call, Entry* known, Capture captured, Segmented& segmented);
  const Entry* serve_as_now(Call& call);
  Entry* find_in_segments(const Call& call) const;
  Entry* find_as_now(const Call& call) const;

  bool is_served(Call& call, bool hit);
  const Entry* serve(Call& call, Entry& hit);
  const Entry* note_hit(Call& call, const Entry& entry);
  const Entry* run_eagerly(Call& call);
  // `for_others`: another rank has to compile, and so all do.
  const Entry* miss(Call& call, bool for_others);
  const Entry* compile(Call& call);
  void note_failures(Call& call, bool for_others);
  bool may_compile(Call& call);
  void absorb_marks(const Call& call);
  // `segments`: null where a read of data is an error.
  Capture capture(Call& call, std::vector<LeafShape> shape, SegmentedCapture* segments = nullptr);
  void refuse(Call& call, const std::string& why);
  Entry make_entry(Call& call, Capture capture);
  const Entry* add_entry(Call& call, Entry entry);
  CallView view_of(Call& call);
  // By which graphs are split now; null: not at all.
  const parallel::DdpBuckets* buckets() const;
  static void count_compile(CompileStats& stats, std::size_t graphs);

  // segments/segmented_call.cpp. Where code reads data the call is served as well (code.served).
  // Null when it was refused and runs as it is.
  std::unique_ptr<Entry> capture_entry(Call& call);
  SegmentOwner segment_owner(Call& call);
  // Of a tree that is there and may grow, within the limit of recompilations.
  SegmentOwner growing_owner(Call& call);
  const Entry* serve_in_segments(Call& call, Entry& hit);
  bool run_compiled(Call& call, Entry& hit, SegmentRun& run);
  const Entry* run_live(Call& call, Entry& hit, Segmented& segmented, bool is_verification);
  void note_unrepeatable(Call& call, Capture made);
  std::optional<Capture> try_segments(Call& call, const std::vector<LeafShape>& shape, Segmented& segmented);
  // The entry of a function that was cut. Null: there can be none, and the function runs as it is from now on.
  std::unique_ptr<Entry> make_segmented_entry(Call& call, Capture capture, Segmented& segmented);
  const Entry* note_path(Call& call, Entry& entry, Capture captured, Segmented& segmented);

  CompileOptions options_;
  std::shared_ptr<torch::nn::Module> module_;

  struct OfRank {
    std::uint64_t world = 0;  // a rank of a later world has nothing to do with the one of the same number before
    std::unique_ptr<RankCache> cache;
  };
  std::map<int, OfRank> caches_;  // by rank; -1 outside of fibers
};

}  // namespace rehearse::compiler
