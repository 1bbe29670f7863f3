// SPDX-License-Identifier: BSD-3-Clause
// Contract: after any additions and removals, the index finds the same buffers as a search through all of them, in
// order of insertion. many_calls_test.cpp shows that the index is fast.
#include <algorithm>
#include <list>
#include <memory_resource>
#include <optional>
#include <random>
#include <vector>

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include "buffers/watched_call.h"

namespace rehearse::sim {
namespace {

using Use = WatchedBuffer::Use;
using Value = WatchedBuffer::Value;
using Which = BufferIndex::Which;

class Index : public testing::Test {
 protected:
  at::Tensor any_view() {
    const auto from = draw(60), columns = draw(6);
    switch (draw(4)) {
      case 0:
        return all_.select(1, columns);  // one run of memory per row
      case 1:
        return all_.slice(1, columns, columns + 2).slice(0, 0, 3);
      default:
        return all_.view({-1}).slice(0, from, from + 1 + draw(12));
    }
  }
  std::int64_t draw(std::int64_t below) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(below));
  }

  std::vector<WatchedBuffer*> by_looking_at_each(const Footprint& bytes, Which which) {
    std::vector<WatchedBuffer*> found;
    for (auto& buffer : buffers_) {
      if ((which == Which::all || buffer.writes()) && overlap(buffer.footprint, bytes)) found.push_back(&buffer);
    }
    return found;
  }

  comm::GroupIdentity group_{0, "world", {0}};
  comm::Operation operation_;
  WatchedCall call_{operation_, group_, 0, 1, *std::pmr::get_default_resource()};
  const at::Tensor all_ = at::empty({10, 8});
  std::mt19937_64 random_{7};
  std::list<WatchedBuffer> buffers_;
  BufferIndex index_;
};

TEST_F(Index, FindsWhatALookAtEachFinds) {
  std::size_t found = 0;
  for (int step = 0; step < 4'000; ++step) {
    if (buffers_.size() < 3 || draw(100) < 50) {
      index_.add(buffers_.emplace_back(call_, any_view(), draw(3) == 0 ? Use::output : Use::input, Value::taken));
    } else if (buffers_.size() > 40 || draw(2) == 0) {
      const auto gone = std::next(buffers_.begin(), draw(static_cast<std::int64_t>(buffers_.size())));
      index_.remove(*gone);
      buffers_.erase(gone);
    }
    const Footprint bytes(any_view());
    for (const auto which : {Which::written, Which::all}) {
      ASSERT_EQ(index_.find(bytes, which), by_looking_at_each(bytes, which)) << step;
      found += index_.find(bytes, which).size();
    }
  }
  EXPECT_GT(found, 4'000u);
}

TEST_F(Index, RemovedTwice_IsNothing) {
  auto& buffer = buffers_.emplace_back(call_, all_, Use::both, Value::taken);
  index_.add(buffer);
  index_.remove(buffer);
  index_.remove(buffer);
  EXPECT_TRUE(index_.find(buffer.footprint, Which::all).empty());
}

}  // namespace
}  // namespace rehearse::sim
