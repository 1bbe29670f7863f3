// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <rehearse/compile/callable.h>
#include <rehearse/parallel/active_ddp.h>

#include "compile/capture_call.h"
#include "compile/rank_cache.h"

namespace rehearse::compiler {

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
    std::vector<std::string> sources = {};  // when they are wanted
  };

  RankCache& cache_of_this_rank();
  const RankCache* find_cache() const;

  bool is_to_be_verified(const Entry& entry) const;
  const Entry* verify(Call& call, Entry& hit);
  const Entry* verify_always(Call& call);

  const Entry* serve(Call& call, Entry& hit);
  // `for_others`: another rank has to compile, and so all do.
  const Entry* miss(Call& call, bool for_others);
  const Entry* compile(Call& call);
  void note_failures(Call& call);
  bool may_compile(Call& call);
  void absorb_marks(const Call& call);
  // Null when it was refused and is to run as it is.
  std::unique_ptr<Capture> try_capture(Call& call);
  Capture capture(Call& call, std::vector<LeafShape> shape);
  Entry make_entry(Call& call, Capture capture);
  const Entry* add_entry(Call& call, Entry entry);
  CallView view_of(Call& call);

  CompileOptions options_;
  std::shared_ptr<torch::nn::Module> module_;

  struct OfRank {
    std::uint64_t world = 0;  // a rank of a later world has nothing to do with the one of the same number before
    std::unique_ptr<RankCache> cache;
  };
  std::map<int, OfRank> caches_;  // by rank; -1 outside of fibers
};

}  // namespace rehearse::compiler
