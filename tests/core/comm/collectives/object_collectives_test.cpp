// SPDX-License-Identifier: BSD-3-Clause
// Contract: payloads of any size arrive whole, at the right place, on every rank: empty, one byte, all byte values,
// megabytes, and mixed sizes.
#include <rehearse/comm/object_collectives.h>

#include <fmt/format.h>

#include "bit_equal.h"
#include "core/comm/whole_world.h"

namespace rehearse::comm {
namespace {

using rehearse::test::BitEqual;

// The payload repeats all byte values. `salt` decides which value comes first.
std::string payload_of(int salt, std::size_t size) {
  std::string payload(size, '\0');
  for (std::size_t i = 0; i < size; ++i)
    payload[i] = static_cast<char>((i * 7 + static_cast<std::size_t>(salt) * 31) & 255);
  return payload;
}

using Sizes = std::function<std::size_t(int rank)>;

const std::vector<std::pair<const char*, Sizes>> kSizes{
    {"all empty", [](int) { return 0; }},
    {"only rank 1 has any", [](int rank) { return rank == 1 ? 300 : 0; }},
    {"one byte each", [](int) { return 1; }},
    {"more from rank to rank", [](int rank) { return static_cast<std::size_t>(rank * rank * 5); }},
    {"megabytes among a few bytes", [](int rank) { return rank % 2 == 0 ? 2'000'003 + rank : 3; }},
};

std::vector<std::string> payloads_of_all(int ranks, const Sizes& size) {
  std::vector<std::string> all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back(payload_of(rank, size(rank)));
  return all;
}

class ObjectCollectives : public ::testing::TestWithParam<int> {
 protected:
  void for_all_sizes(const std::function<void(RankContext&, const std::vector<std::string>& all)>& body) {
    for (const auto& [what, size] : kSizes) {
      SCOPED_TRACE(what);
      const auto all = payloads_of_all(ranks, size);
      on_ranks(ranks, [&](RankContext& ctx) { body(ctx, all); });
    }
  }

  const int ranks = GetParam();
};

// EXPECT_EQ would print megabytes.
#define EXPECT_SAME(a, b) EXPECT_TRUE((a) == (b))

TEST_P(ObjectCollectives, AllGather) {
  for_all_sizes([](RankContext& ctx, const std::vector<std::string>& all) {
    EXPECT_SAME(all_gather_object(ctx.group(), all[static_cast<std::size_t>(ctx.rank())]), all);
  });
}

TEST_P(ObjectCollectives, Broadcast_FromEitherEnd) {
  for_all_sizes([this](RankContext& ctx, const std::vector<std::string>& all) {
    for (const int root : {0, ranks - 1}) {
      const auto& mine = all[static_cast<std::size_t>(ctx.rank())];
      EXPECT_SAME(broadcast_object(ctx.group(), mine, root), all[static_cast<std::size_t>(root)]);
    }
  });
}

TEST_P(ObjectCollectives, Gather_ToEitherEnd) {
  for_all_sizes([this](RankContext& ctx, const std::vector<std::string>& all) {
    for (const int root : {0, ranks - 1}) {
      const auto got = gather_object(ctx.group(), all[static_cast<std::size_t>(ctx.rank())], root);
      EXPECT_SAME(got, (ctx.rank() == root ? all : std::vector<std::string>()));
    }
  });
}

TEST_P(ObjectCollectives, Scatter_FromEitherEnd) {
  for_all_sizes([this](RankContext& ctx, const std::vector<std::string>& all) {
    for (const int root : {0, ranks - 1}) {
      const auto given = ctx.rank() == root ? all : std::vector<std::string>();
      EXPECT_SAME(scatter_object(ctx.group(), given, root), all[static_cast<std::size_t>(ctx.rank())]);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(ranks, ObjectCollectives, ::testing::Values(1, 2, 3, 8));

TEST(ObjectCollectivesOfGroups, RootsAreRanksOfTheGroup) {
  on_ranks(5, [](RankContext& ctx) {
    const Group group = ctx.new_group({4, 2, 1});
    if (!group) return;
    EXPECT_EQ(broadcast_object(group, fmt::format("from {}", ctx.rank()), 0), "from 4");
    const auto all = all_gather_object(group, std::to_string(ctx.rank()));
    EXPECT_EQ(all, (std::vector<std::string>{"4", "2", "1"}));
  });
}

TEST(ObjectCollectivesOfValues, ThroughPickle) {
  on_ranks(3, [](RankContext& ctx) {
    c10::Dict<std::string, at::Tensor> state;
    state.insert("weight", at::full({ctx.rank(), 2}, ctx.rank(), at::kHalf));
    const c10::IValue value = c10::ivalue::Tuple::create({ctx.rank(), std::string("rank"), state});
    const auto all = all_gather_object(ctx.group(), to_bytes(value));
    for (int rank = 0; rank < 3; ++rank) {
      const auto tuple = from_bytes(all[static_cast<std::size_t>(rank)]).toTuple();
      EXPECT_EQ(tuple->elements()[0].toInt(), rank);
      EXPECT_EQ(tuple->elements()[1].toStringRef(), "rank");
      const auto weight = tuple->elements()[2].toGenericDict().at("weight").toTensor();
      EXPECT_EQ(weight.scalar_type(), at::kHalf);
      EXPECT_THAT(weight, BitEqual(at::full({rank, 2}, rank, at::kHalf)));
    }
  });
  EXPECT_THROW(from_bytes("no pickle"), c10::Error);
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const c10::ValueError& error) {
    return error.what_without_backtrace();
  }
  return "no ValueError";
}

TEST(ObjectCollectivesErrors, NameWhatIsWrong) {
  on_ranks(2, [](RankContext& ctx) {
    const auto& group = ctx.group().get();
    EXPECT_EQ(refusal([&] { all_gather_object({}, "x"); }),
              "all_gather_object: the group is null; is this rank no member of it?");
    EXPECT_EQ(refusal([&] { broadcast_object(group, "x", 2); }),
              "broadcast_object: root is 2; the group has ranks 0 to 1");
    EXPECT_EQ(refusal([&] { gather_object(group, "x", -1); }), "gather_object: root is -1; the group has ranks 0 to 1");
    EXPECT_EQ(refusal([&] { scatter_object(group, {"x"}, ctx.rank()); }),
              "scatter_object: the root gave 1 payloads; a group of 2 needs one for each rank");
  });
}

// Its broadcast fails, and goes on using the tensor, as gloo's does after a timeout.
class FailingBackend : public c10d::Backend {
 public:
  FailingBackend() : Backend(0, 2) {}
  const std::string getBackendName() const override { return "failing"; }
  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions&) override {
    in_use = tensors;
    throw std::runtime_error("timed out");
  }

  std::vector<at::Tensor> in_use;
};

TEST(ObjectCollectivesErrors, AfterAFailure_TheMemoryInUseRemains) {
  const auto backend = c10::make_intrusive<FailingBackend>();
  const auto group = c10::make_intrusive<c10d::ProcessGroup>(0, 2);
  group->setBackend(at::kCPU, c10d::ProcessGroup::BackendType::CUSTOM, backend);
  for (const bool scatter : {false, true}) {
    EXPECT_THROW(scatter ? scatter_object(group, {"a", "b"}, 0) : broadcast_object(group, "a", 0), std::runtime_error);
    ASSERT_EQ(backend->in_use.size(), 1u);
    EXPECT_NE(backend->in_use[0].storage().data_ptr().get_context(), nullptr) << "the tensor does not own its memory";
  }
}

}  // namespace
}  // namespace rehearse::comm
