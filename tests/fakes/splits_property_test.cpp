// SPDX-License-Identifier: BSD-3-Clause
// Contract: for any matrix of splits and any sizes, each rank receives what each rank, itself included, has sent to it.
#include <rapidcheck.h>

#include "group_fixture.h"

namespace rehearse::fakes::testing {
namespace {

using c10d::OpType;
using Splits = std::vector<std::vector<std::int64_t>>;  // [from][to]

rc::Gen<Splits> any_splits() {
  return rc::gen::mapcat(rc::gen::inRange<std::size_t>(1, 9), [](std::size_t ranks) {
    const auto row = rc::gen::container<std::vector<std::int64_t>>(ranks, rc::gen::inRange<std::int64_t>(0, 40));
    return rc::gen::container<Splits>(ranks, row);
  });
}

// Different for every sender, receiver and position.
at::Tensor message(std::size_t from, std::size_t to, std::int64_t size) {
  const auto first = static_cast<std::int64_t>(from * 100'000 + to * 1'000);
  return at::arange(first, first + size);
}

class Splitting : public FabricTest {};

TEST_F(Splitting, AllToAllBase_AnyMatrix) {
  const bool ok = rc::check([&] {
    const Splits splits = *any_splits();
    const std::size_t n = splits.size();
    Calls calls(OpType::ALLTOALL_BASE, static_cast<int>(n));
    std::vector<at::Tensor> expected(n);
    for (std::size_t r = 0; r < n; ++r) {
      std::vector<at::Tensor> sent, received;
      for (std::size_t i = 0; i < n; ++i) {
        sent.push_back(message(r, i, splits[r][i]));
        received.push_back(message(i, r, splits[i][r]));
        calls.operations[r].input_splits.push_back(splits[r][i]);
        calls.operations[r].output_splits.push_back(splits[i][r]);
      }
      expected[r] = at::cat(received);
      calls.operations[r].inputs = {at::cat(sent)};
      calls.operations[r].outputs = {at::full(expected[r].sizes(), -1, at::kLong)};
    }
    run(calls);
    for (std::size_t r = 0; r < n; ++r) RC_ASSERT(at::equal(calls.operations[r].outputs[0], expected[r]));
  });
  EXPECT_TRUE(ok);
}

TEST_F(Splitting, AllToAllLists_AnyMatrix) {
  const bool ok = rc::check([&] {
    const Splits splits = *any_splits();
    const std::size_t n = splits.size();
    Calls calls(OpType::ALLTOALL, static_cast<int>(n));
    for (std::size_t r = 0; r < n; ++r) {
      for (std::size_t i = 0; i < n; ++i) {
        calls.operations[r].inputs.push_back(message(r, i, splits[r][i]));
        calls.operations[r].outputs.push_back(at::full({splits[i][r]}, -1, at::kLong));
      }
    }
    run(calls);
    for (std::size_t r = 0; r < n; ++r) {
      for (std::size_t i = 0; i < n; ++i) {
        RC_ASSERT(at::equal(calls.operations[r].outputs[i], message(i, r, splits[i][r])));
      }
    }
  });
  EXPECT_TRUE(ok);
}

TEST_F(Splitting, AllGather_AnySizes) {
  const bool ok = rc::check([&] {
    const auto sizes =
        *rc::gen::suchThat(rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(0, 6'000)),
                           [](const auto& all) { return !all.empty() && all.size() <= 8; });
    const std::size_t n = sizes.size();
    Calls calls(OpType::ALLGATHER, static_cast<int>(n));
    for (std::size_t r = 0; r < n; ++r) {
      calls.operations[r].inputs = {message(r, 0, sizes[r])};
      for (const auto size : sizes) calls.operations[r].outputs.push_back(at::full({size}, -1, at::kLong));
    }
    run(calls);
    for (std::size_t r = 0; r < n; ++r) {
      for (std::size_t i = 0; i < n; ++i) {
        RC_ASSERT(at::equal(calls.operations[r].outputs[i], message(i, 0, sizes[i])));
      }
    }
  });
  EXPECT_TRUE(ok);
}

}  // namespace
}  // namespace rehearse::fakes::testing
