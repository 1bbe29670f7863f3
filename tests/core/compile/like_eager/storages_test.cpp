// SPDX-License-Identifier: BSD-3-Clause
// Contract: a captured function can free the memory of tensors, allocate it again, and ask for its size, as in eager
// mode.
#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/capture/storage.h>
#include <rehearse/compile/compile.h>
#include <rehearse_internal/capture/errors.h>

#include "bit_equal.h"
#include "core/compile/like_eager/layers.h"

namespace rehearse_test {
namespace {

using rehearse::resize_storage;
using rehearse::storage_bytes;
using rehearse::capture::NotCapturable;
using rehearse::test::BitEqual;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::int64_t bytes_of(const at::Tensor& tensor) { return static_cast<std::int64_t>(tensor.storage().nbytes()); }

TEST(Storages, AreResizedInEagerMode) {
  const at::Tensor x = at::arange(4, at::kFloat), view = x.view({2, 2});
  const auto version = x._version();
  EXPECT_EQ(storage_bytes(view), 16);
  resize_storage(view, 8);
  EXPECT_EQ(bytes_of(x), 8);
  resize_storage(x, 16);
  EXPECT_THAT(x.slice(0, 0, 2), BitEqual(at::arange(2, at::kFloat)));  // the bytes that stay keep their values
  EXPECT_EQ(x._version(), version);
}

TEST(Storages, OfLentMemory_AreNotResized) {
  std::array<float, 2> memory{};
  const at::Tensor x = at::from_blob(memory.data(), {2});
  EXPECT_THAT([&] { resize_storage(x, 16); }, ThrowsMessage<c10::Error>(HasSubstr("memory cannot be resized")));
}

TEST(Storages, OfWhatHasNone) {
  const at::Tensor x = at::ones({2});
  EXPECT_THAT([&] { resize_storage(x, -4); },
              ThrowsMessage<c10::ValueError>(HasSubstr("resize_storage: bytes is -4; a storage has 0 or more")));
  EXPECT_THAT([] { resize_storage(at::Tensor(), 4); },
              ThrowsMessage<c10::ValueError>(HasSubstr("resize_storage: the tensor is undefined")));
  EXPECT_THAT([] { storage_bytes(at::Tensor()); },
              ThrowsMessage<c10::ValueError>(HasSubstr("storage_bytes: the tensor is undefined")));
  EXPECT_THAT([] { storage_bytes(at::eye(2).to_sparse()); },
              ThrowsMessage<c10::ValueError>(HasSubstr("storage_bytes: the tensor has no storage")));
  EXPECT_THAT(
      [] { resize_storage(at::ones({2}, at::kMeta), 4); },
      ThrowsMessage<c10::NotImplementedError>(HasSubstr("the tensor is on meta; only tensors of the CPU and of GPUs")));
}

struct StorageSetting {
  const char* backend;
  bool grad_enabled;
};
constexpr StorageSetting kStorageSettings[] = {
    {"eager", false}, {"eager", true}, {"aot_eager", false}, {"aot_eager", true}};

at::Tensor free_and_fill(const at::Tensor& x, const at::Tensor& whole) {
  const at::Tensor y = x * whole.sum();
  const c10::SymInt bytes = storage_bytes(whole);
  resize_storage(whole, 0);
  const bool is_free = storage_bytes(whole.view(-1)) == 0;
  resize_storage(whole, bytes);
  whole.copy_(y.detach());
  return is_free ? y.sin() : y;
}

TEST(Storages, OfOneCompilationForEachLength) {
  for (const StorageSetting setting : kStorageSettings) {
    SCOPED_TRACE(std::string(setting.backend) + (setting.grad_enabled ? " with gradients" : ""));
    const at::AutoGradMode mode(setting.grad_enabled);
    auto compiled = rehearse::compile(free_and_fill, {.backend = setting.backend, .dynamic = true, .fullgraph = true});
    for (const std::int64_t length : {10, 12, 10, 7}) {
      const at::Tensor x = at::randn({length}).requires_grad_(setting.grad_enabled), twin_x = x.detach().clone();
      twin_x.requires_grad_(setting.grad_enabled);
      const at::Tensor whole = at::randn({length}), twin = whole.clone();
      const at::Tensor found = compiled(x, whole), expected = free_and_fill(twin_x, twin);
      EXPECT_THAT(found, BitEqual(expected));
      EXPECT_THAT(whole, BitEqual(twin));
      EXPECT_EQ(bytes_of(whole), 4 * length);
      if (!setting.grad_enabled) continue;
      found.sum().backward();
      expected.sum().backward();
      EXPECT_THAT(x.grad(), BitEqual(twin_x.grad()));
    }
    EXPECT_EQ(compiled.stats().compiles, 1);
  }
}

// If the function asks for the size of a storage, a guard compares this size. Here, the sizes of the tensor stay the
// same, so only the storage's size decides which graph serves the call.
TEST(Storages, QuestionsAreGuards) {
  const auto function = [](const at::Tensor& x, const at::Tensor& whole) {
    const c10::SymInt had = storage_bytes(whole);
    if (had == 0) resize_storage(whole, storage_bytes(x));
    return std::tuple(x + 1, had);
  };
  for (const char* backend : {"eager", "aot_eager"}) {
    auto compiled = rehearse::compile(function, {.backend = backend, .fullgraph = true});
    const at::Tensor x = at::ones({3});
    const auto call = [&](std::int64_t bytes) {
      const at::Tensor whole = at::ones({3});
      resize_storage(whole, bytes);
      EXPECT_EQ(std::get<1>(compiled(x, whole)), bytes);
      EXPECT_EQ(bytes_of(whole), bytes == 0 ? 12 : bytes);
      return compiled.stats().compiles_in_last_call;
    };
    EXPECT_EQ(call(12), 1);
    EXPECT_EQ(call(12), 0);
    EXPECT_EQ(call(0), 1);
    EXPECT_EQ(call(0), 0);
    EXPECT_EQ(call(20), 1);
    EXPECT_EQ(call(12), 0);
    const auto failure = compiled.explain().recompiles.at(0).failures.front();
    EXPECT_EQ(failure.source, "arg1.storage_bytes");
    EXPECT_EQ(failure.expected, "12");
    EXPECT_EQ(failure.found, "0");
  }
}

TEST(Storages, QuestionsAboutATensorOutside) {
  const at::Tensor outside = at::ones({5});
  auto compiled = rehearse::compile([&](const at::Tensor& x) { return storage_bytes(outside) == 0 ? x * 2 : x * 3; },
                                    {.fullgraph = true});
  for (const std::int64_t bytes : {20, 0, 20, 0}) {
    resize_storage(outside, bytes);
    EXPECT_EQ(compiled(at::ones({1})).item<float>(), bytes == 0 ? 2 : 3);
  }
  EXPECT_EQ(compiled.stats().compiles, 2);
}

// A tensor that the function computes has as many bytes as in eager mode. If the function resizes the memory, all
// tensors that share it see the change.
TEST(Storages, OfWhatIsComputed) {
  const auto function = [](const at::Tensor& x) {
    const at::Tensor y = x * 2, view = y.view(-1);
    std::vector<c10::SymInt> bytes = {storage_bytes(y), storage_bytes(x.slice(0, 1))};
    resize_storage(view, 0);
    bytes.push_back(storage_bytes(y));
    resize_storage(y, 400);
    bytes.push_back(storage_bytes(view));
    return std::tuple(y, bytes);
  };
  for (const char* backend : {"eager", "aot_eager"}) {
    auto compiled = rehearse::compile(function, {.backend = backend, .dynamic = true, .fullgraph = true});
    for (const std::int64_t rows : {3, 4}) {
      const auto [y, bytes] = compiled(at::ones({rows, 2}));
      EXPECT_THAT(bytes, ElementsAre(8 * rows, 8 * rows, 0, 400));
      EXPECT_EQ(bytes_of(y), 400);
    }
    EXPECT_EQ(compiled.stats().compiles, 1);
  }
}

TEST(Storages, ThatAotEagerLeavesToAutograd) {
  auto compiled = rehearse::compile(free_and_fill, {.backend = "aot_eager"});
  compiled(at::ones({3}), at::ones({3}));
  EXPECT_THAT(compiled.explain().entries.at(0).graphs.at(0).eager_because,
              AllOf(HasSubstr("it changes the size of a storage, at "), HasSubstr("storages_test.cpp:")));
}

// If sizes are symbols, a back end may run the graph on fakes to determine the layouts of the graph's outputs. In this
// run, too, a tensor that the graph changes must not be a leaf, because autograd refuses to change a leaf in place.
TEST(Storages, WhereSizesAreSymbols) {
  auto compiled = rehearse::compile(
      [](const at::Tensor& x) {
        x.mul_(3);
        const at::Tensor own = x.detach().clone();
        {
          const at::NoGradGuard no_grad;
          resize_storage(own, storage_bytes(own) * 2);
        }
        return x.mul_(2);
      },
      {.backend = "aot_eager", .dynamic = true, .fullgraph = true});
  for (const std::int64_t rows : {3, 6}) {
    const at::Tensor leaf = at::ones({rows, rows + 2, 4}).requires_grad_();
    compiled(leaf * 1).sum().backward();
    EXPECT_THAT(leaf.grad(), BitEqual(at::full({rows, rows + 2, 4}, 6.0)));
  }
  EXPECT_EQ(compiled.stats().compiles, 1);
}

TEST(Storages, BehindARead) {
  const auto function = [](const at::Tensor& x) {
    const bool positive = x.sum().item<float>() > 0;
    return positive && storage_bytes(x) == 12 ? x * 2 : x;
  };
  auto compiled = rehearse::compile(function);
  for (int call = 0; call < 3; ++call) EXPECT_THAT(compiled(at::ones({3})), BitEqual(at::full({3}, 2.0)));
  EXPECT_THAT(compiled.explain().refusal,
              AllOf(HasSubstr("storage_bytes() is called behind a read or an eager region of a captured function, at "),
                    HasSubstr("storages_test.cpp:"), HasSubstr("Call it in front of that")));
}

const LayersProgram kStoragesInLayers[] = {
    {"a buffer that is freed between two uses",
     [](LayersImpl& net, const at::Tensor& x) {
       resize_storage(net.buffer, storage_bytes(x));
       {
         const at::NoGradGuard no_grad;
         net.buffer.copy_(x * 2);
       }
       const at::Tensor h = net.b->forward(net.a->forward(x) + net.buffer);
       resize_storage(net.buffer, 0);
       resize_storage(net.buffer, storage_bytes(x));
       {
         const at::NoGradGuard no_grad;
         net.buffer.fill_(3);
       }
       return net.c->forward(h) * net.buffer.sum();
     }},
};
TEST(Storages, InAModuleInPieces) { expect_like_eager_in_pieces(kStoragesInLayers); }
TEST(Storages, InAModule) { expect_like_eager_in_one_piece(kStoragesInLayers); }

}  // namespace
}  // namespace rehearse_test
