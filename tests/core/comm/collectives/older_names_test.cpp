// SPDX-License-Identifier: BSD-3-Clause
// Contract: a c10d back end of a program may override only the older names of c10d's calls, and its calls may wait for
// other ranks. c10d's definitions of the newer names hold a thread-local flag meanwhile, which lies in the executable
// and belongs to one rank.
#include "core/comm/whole_world.h"

namespace rehearse::comm {
namespace {

class OlderNames : public c10d::Backend {
 public:
  OlderNames(RankContext& ctx, int size) : Backend(ctx.rank(), size), ctx_(ctx) {}
  const std::string getBackendName() const override { return "older names"; }

  c10::intrusive_ptr<c10d::Work> _allgather_base(at::Tensor&, at::Tensor&, const c10d::AllgatherOptions&) override {
    ctx_.group().barrier()->wait();
    return ctx_.group().barrier();
  }

 private:
  RankContext& ctx_;
};

template <class Backend>
c10::intrusive_ptr<c10d::Work> all_gather(Backend& backend, at::Tensor& output, at::Tensor& input) {
  if constexpr (requires { backend.all_gather_single(output, input, c10d::AllgatherOptions()); }) {
    return backend.all_gather_single(output, input, c10d::AllgatherOptions());
  } else {
    return backend._allgather_base(output, input, c10d::AllgatherOptions());
  }
}

TEST(OlderNames, CallsOfSeveralRanksAtATime_Pass) {
  on_ranks(3, [](RankContext& ctx) {
    const auto backend = c10::make_intrusive<OlderNames>(ctx, ctx.size());
    at::Tensor output = at::empty({ctx.size()}), input = at::ones({1});
    for (int i = 0; i < 2; ++i) all_gather(*backend, output, input)->wait();
  });
}

// c10d has gather_single() since 2.14, and has no older name for it.
template <class Backend>
void expect_gather_single(Backend& backend, int rank, int ranks) {
  if constexpr (requires { &Backend::gather_single; }) {
    at::Tensor whole = rank == 1 ? at::zeros({ranks * 2, 3}, at::kDouble) : at::Tensor();
    at::Tensor part = values({2, 3}, rank);
    backend.gather_single(whole, part, {.rootRank = 1})->wait();
    if (rank == 1) {
      EXPECT_TRUE(at::equal(whole, at::cat(values_of_all({2, 3}, ranks))));
    }
  }
}

TEST(NewNames, GatherSingle_FillsTheTensorOfTheRoot) {
  on_ranks(
      3, [](RankContext& ctx) { expect_gather_single(*ctx.group()->getBackend(c10::DeviceType::CPU), ctx.rank(), 3); });
}

// A call that nobody has overridden is c10d's error, also after another rank's.
TEST(OlderNames, CallThatTheBackEndDoesNotHave_IsAnErrorOfEachRank) {
  on_ranks(2, [](RankContext& ctx) {
    const auto backend = c10::make_intrusive<OlderNames>(ctx, ctx.size());
    at::Tensor output = at::empty({1}), input = at::ones({2});
    for (int i = 0; i < 2; ++i) {
      EXPECT_THROW(backend->_reduce_scatter_base(output, input, c10d::ReduceScatterOptions()), c10::Error);
      ctx.group().barrier()->wait();
    }
  });
}

}  // namespace
}  // namespace rehearse::comm
