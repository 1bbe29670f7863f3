// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstring>

#include <malloc.h>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/SavedTensorHooks.h>
#include <ATen/SequenceNumber.h>
#include <ATen/autocast_mode.h>
#include <ATen/record_function.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "bit_equal.h"
#include "core/torch_state/hand_fibers.h"
#include "torch_state/tls/tls_layout.h"

namespace rehearse::torch_state {
namespace {

using rehearse::test::BitEqual;

void run_backward() {
  const at::Tensor a = at::ones({2, 2}).requires_grad_();
  torch::autograd::backward({(a * a).sum()}, {});
  EXPECT_THAT(a.grad(), BitEqual(at::full({2, 2}, 2.0)));
}

// This thread's per-fiber variables whose value differs from that in a new thread.
std::vector<std::string> changed_variables() {
  std::vector<std::string> changed;
  const TlsLayout& layout = tls_layout();
  for (const TlsRange& range : layout.ranges) {
    const TlsModule& module = layout.modules[range.module];
    const std::byte* live = tls_block_of_this_thread(module);
    for (const TlsSymbol& symbol : module.symbols) {
      if (symbol.offset < range.offset || symbol.offset >= range.offset + range.bytes) continue;
      const std::byte* initial = module.initial.data() + symbol.offset;
      if (std::memcmp(live + symbol.offset, initial, symbol.bytes) != 0) changed.push_back(symbol.name);
    }
  }
  return changed;
}

bool has_changed(std::string_view part_of_name) {
  const auto changed = changed_variables();
  return std::any_of(changed.begin(), changed.end(),
                     [&](const std::string& name) { return name.find(part_of_name) != std::string::npos; });
}

TEST(TorchRankState, FiberCreatedAfterBackwardOnTheHost_FindsTheInitialImage) {
  run_backward();
  ASSERT_TRUE(has_changed("tls_local_ready_queue"));
  TorchRankState state;
  HandFibers fibers(state, 2);
  fibers.run(0, [] { EXPECT_EQ(changed_variables(), std::vector<std::string>{}); });
  fibers.run(0, [] { run_backward(); });
  fibers.run(0, [] { EXPECT_TRUE(has_changed("tls_local_ready_queue")); });
  fibers.run(1, [] { EXPECT_EQ(changed_variables(), std::vector<std::string>{}); });
}

TEST(TorchRankState, GradMode_IsEachFibersOwn) {
  TorchRankState state;
  HandFibers fibers(state, 2);
  fibers.run(0, [] { c10::GradMode::set_enabled(false); });
  fibers.run(1, [] { EXPECT_TRUE(c10::GradMode::is_enabled()); });
  EXPECT_TRUE(c10::GradMode::is_enabled());
  fibers.run(0, [] { EXPECT_FALSE(c10::GradMode::is_enabled()); });
}

TEST(TorchRankState, HostsSettings_AreNotInheritedAndComeBack) {
  TorchRankState state;
  HandFibers fibers(state, 1);
  const c10::AutoGradMode no_grad(false);
  fibers.run(0, [] { EXPECT_TRUE(c10::GradMode::is_enabled()); });
  EXPECT_FALSE(c10::GradMode::is_enabled());
}

TEST(TorchRankState, DispatchKeys_AreEachFibersOwn) {
  TorchRankState state;
  HandFibers fibers(state, 2);
  const auto meta_included = [] { return c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::Meta); };
  fibers.run(0, [] { c10::impl::tls_set_dispatch_key_included(c10::DispatchKey::Meta, true); });
  fibers.run(1, [&] { EXPECT_FALSE(meta_included()); });
  fibers.run(0, [&] { EXPECT_TRUE(meta_included()); });
  EXPECT_FALSE(meta_included());
}

TEST(TorchRankState, Autocast_IsEachFibersOwn) {
  TorchRankState state;
  HandFibers fibers(state, 2);
  fibers.run(0, [] {
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::set_autocast_dtype(at::kCPU, at::kHalf);
    at::autocast::increment_nesting();
  });
  fibers.run(1, [] {
    EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
    EXPECT_EQ(at::autocast::get_autocast_dtype(at::kCPU), at::kBFloat16);
    EXPECT_EQ(at::autocast::increment_nesting(), 1);
  });
  fibers.run(0, [] {
    EXPECT_TRUE(at::autocast::is_autocast_enabled(at::kCPU));
    EXPECT_EQ(at::autocast::get_autocast_dtype(at::kCPU), at::kHalf);
    EXPECT_EQ(at::autocast::increment_nesting(), 2);
  });
}

TEST(TorchRankState, SavedTensorHooks_AreEachFibersOwn) {
  TorchRankState state;
  HandFibers fibers(state, 2);
  // The text fits inside the string object, which then points into itself. That is allowed, because the variable's
  // address never changes.
  fibers.run(0, [] { at::SavedTensorDefaultHooks::disable("rank 0"); });
  fibers.run(1, [] {
    EXPECT_TRUE(at::SavedTensorDefaultHooks::is_enabled());
    at::SavedTensorDefaultHooks::disable("rank 1");
  });
  fibers.run(0, [] { EXPECT_EQ(at::SavedTensorDefaultHooks::get_disabled_error_message(), "rank 0"); });
  fibers.run(1, [] { EXPECT_EQ(at::SavedTensorDefaultHooks::get_disabled_error_message(), "rank 1"); });
}

TEST(TorchRankState, WarningHandler_IsEachFibersOwn) {
  struct Silent : c10::WarningHandler {
    void process(const c10::Warning&) override {}
  } silent;
  TorchRankState state;
  HandFibers fibers(state, 2);
  fibers.run(0, [&] { c10::WarningUtils::set_warning_handler(&silent); });
  fibers.run(1, [&] { EXPECT_NE(c10::WarningUtils::get_warning_handler(), &silent); });
  fibers.run(0, [&] { EXPECT_EQ(c10::WarningUtils::get_warning_handler(), &silent); });
}

TEST(TorchRankState, SequenceNumbers_StartAtZeroInEachFiber) {
  TorchRankState state;
  HandFibers fibers(state, 2);
  fibers.run(0, [] { run_backward(); });
  fibers.run(1, [] { EXPECT_EQ(at::sequence_number::peek(), 0u); });
  fibers.run(0, [] { EXPECT_GT(at::sequence_number::peek(), 0u); });
}

TEST(TorchRankState, ThreadId_IsOneForEachRankAndTheSameInEveryWorld) {
  std::vector<std::uint64_t> ids;
  const std::uint64_t host = at::RecordFunction::currentThreadId();
  for (int world = 0; world < 2; ++world) {
    TorchRankState state;
    HandFibers fibers(state, 2);
    for (int rank : {0, 1}) fibers.run(rank, [&] { ids.push_back(at::RecordFunction::currentThreadId()); });
    EXPECT_EQ(at::RecordFunction::currentThreadId(), host);

    std::vector<std::byte> helper(state.image_bytes()), here(state.image_bytes());
    state.create_image(helper.data(), 1, 1);
    state.exchange(here.data(), helper.data());
    EXPECT_EQ(at::RecordFunction::currentThreadId(), ids[1]);
    state.end_fiber(1, 1);
    state.exchange(helper.data(), here.data());
  }
  EXPECT_NE(ids[0], ids[1]);
  EXPECT_EQ(ids[0], ids[2]);
  EXPECT_EQ(ids[1], ids[3]);
}

// LibTorch keeps these settings in its cache of callbacks. Fibers share the cache, so each switch exchanges the
// settings alone.
TEST(TorchRankState, RecordFunctionSettings_AreEachFibersOwn) {
  TorchRankState state;
  HandFibers fibers(state, 2);
  fibers.run(0, [] { at::enableRecordFunction(false); });
  EXPECT_TRUE(at::isRecordFunctionEnabled());
  fibers.run(1, [] { EXPECT_TRUE(at::isRecordFunctionEnabled()); });
  fibers.run(0, [] { EXPECT_FALSE(at::isRecordFunctionEnabled()); });
  fibers.end(0);
  EXPECT_TRUE(at::isRecordFunctionEnabled());
}

c10::intrusive_ptr<c10d::ProcessGroup> new_group(int rank) {
  return c10::make_intrusive<c10d::ProcessGroup>(c10::make_intrusive<c10d::HashStore>(), rank, 2);
}

TEST(TorchRankState, ProcessGroups_AreEachRanksOwnAndGoneWithIt) {
  TorchRankState state;
  c10::intrusive_ptr<c10d::ProcessGroup> groups[2] = {new_group(0), new_group(1)};
  {
    HandFibers fibers(state, 2);
    for (int rank : {0, 1}) {
      fibers.run(rank, [&] {
        EXPECT_FALSE(c10d::currentProcessGroup().defined());
        c10d::setProcessGroup(groups[rank]);
        c10d::register_process_group("world", groups[rank]);
      });
    }
    for (int rank : {0, 1}) {
      fibers.run(rank, [&] {
        EXPECT_EQ(c10d::currentProcessGroup(), groups[rank]);
        EXPECT_EQ(c10d::resolve_process_group("world"), groups[rank]);
      });
    }
    EXPECT_FALSE(c10d::currentProcessGroup().defined());
  }
  EXPECT_EQ(groups[0].use_count(), 1u);
  HandFibers later(state, 1);
  later.run(0, [] { EXPECT_THROW(c10d::resolve_process_group("world"), c10::Error); });
}

TEST(TorchRankState, ProcessGroupsOfARankLeftBehind_AreGoneInTheNextWorld) {
  for (int world = 0; world < 2; ++world) {
    TorchRankState state;
    for (int run = 0; run < 2; ++run) {
      HandFibers fibers(state, 2);
      fibers.run(1, [] { EXPECT_NO_THROW(c10d::register_process_group("world", new_group(1))); });
      fibers.leave_behind(1);
    }
  }
}

TEST(TorchRankState, Threads_AreOneDuringItsLifeAndPutBack) {
  const int before = at::get_num_threads();
  at::set_num_threads(2);
  {
    TorchRankState state;
    EXPECT_EQ(at::get_num_threads(), 1);
  }
  EXPECT_EQ(at::get_num_threads(), 2);
  {
    TorchRankState state({.single_threaded_ops = false});
    EXPECT_EQ(at::get_num_threads(), 2);
  }
  at::set_num_threads(before);
}

TEST(TorchRankState, SecondObject_IsRefused) {
  TorchRankState state;
  EXPECT_THROW(TorchRankState{}, std::logic_error);
}

TEST(TorchRankState, ThousandRounds_DoNotGrowTheHeap) {
  TorchRankState state;
  const auto round = [&] {
    HandFibers fibers(state, 2);
    for (int rank : {0, 1}) fibers.run(rank, [] { run_backward(); });
  };
  for (int k = 0; k < 50; ++k) round();
  const std::size_t before = mallinfo2().uordblks;
  for (int k = 0; k < 1000; ++k) round();
  EXPECT_LT(mallinfo2().uordblks, before + 16 * 1024);
}

}  // namespace
}  // namespace rehearse::torch_state
