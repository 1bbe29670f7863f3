// SPDX-License-Identifier: BSD-3-Clause
// Compares TlsExchange with whole copies, on artificial blocks: random ranges, random initial values, random writes.
#include <algorithm>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "torch_state/tls/tls_exchange.h"

namespace rehearse::torch_state {
namespace {

using Bytes = std::vector<std::byte>;
using Exchange = void (*)(TlsExchange&, std::byte*, const std::byte*);

void exchange_best(TlsExchange& tls, std::byte* out, const std::byte* in) { tls.exchange(out, in); }

// The thread-local blocks of two libraries, as in a new thread (`initial`) and as they are now (`live`). TlsExchange
// exchanges only the ranges.
struct Blocks {
  Blocks(std::vector<TlsRange> the_ranges, std::size_t bytes, std::mt19937& random) : ranges(std::move(the_ranges)) {
    for (Bytes& block : initial) {
      block.resize(bytes);
      // Mostly zero, like LibTorch's blocks.
      for (std::byte& byte : block) byte = random() % 64 == 0 ? static_cast<std::byte>(random()) : std::byte{0};
    }
    std::copy(std::begin(initial), std::end(initial), std::begin(live));
  }

  TlsExchange exchange() {
    std::byte* const starts[] = {live[0].data(), live[1].data()};
    const std::byte* const initials[] = {initial[0].data(), initial[1].data()};
    return TlsExchange(ranges, starts, initials);
  }

  Bytes read() const {
    Bytes all;
    for (const TlsRange& range : ranges) {
      const auto begin = live[range.module].begin() + static_cast<std::ptrdiff_t>(range.offset);
      all.insert(all.end(), begin, begin + static_cast<std::ptrdiff_t>(range.bytes));
    }
    return all;
  }

  // Writes to a few variables, sometimes their initial value.
  void scribble(std::mt19937& random) {
    for (int writes = static_cast<int>(random() % 4); writes > 0; --writes) {
      const TlsRange& range = ranges[random() % ranges.size()];
      const std::size_t at = range.offset + random() % range.bytes;
      live[range.module][at] = random() % 3 == 0 ? initial[range.module][at] : static_cast<std::byte>(random());
    }
  }

  std::vector<TlsRange> ranges;
  Bytes initial[2];
  Bytes live[2];
};

std::vector<TlsRange> random_ranges(std::size_t bytes, std::mt19937& random) {
  std::vector<TlsRange> ranges;
  for (const std::size_t module : {0, 1}) {
    std::size_t at = random() % 40;
    while (true) {
      const std::size_t length = 1 + random() % 150;
      if (at + length > bytes) break;
      ranges.push_back({module, at, length});
      at += length + 1 + random() % 200;
    }
  }
  return ranges;
}

class TlsExchanges : public ::testing::TestWithParam<Exchange> {};

TEST_P(TlsExchanges, ManyFibers_EachFindsItsOwnBytesAgain) {
  constexpr std::size_t kBytes = 700, kFibers = 5;
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    Blocks blocks(random_ranges(kBytes, random), kBytes, random);
    TlsExchange tls = blocks.exchange();
    // Each image is one byte too long, so that a guard byte reveals writes past image_bytes().
    std::vector<Bytes> images(kFibers, Bytes(tls.image_bytes() + 1, std::byte{0xA5}));
    std::vector<Bytes> expected(kFibers, blocks.read());
    for (Bytes& image : images) tls.create(image.data());
    std::size_t current = 0;  // at first, image 0 is the thread's own, so it is written before it is read
    for (int step = 0; step < 100; ++step) {
      blocks.scribble(random);
      expected[current] = blocks.read();
      const Bytes outside = blocks.live[1];
      const std::size_t next = (current + 1 + random() % (kFibers - 1)) % kFibers;
      GetParam()(tls, images[current].data(), images[next].data());
      ASSERT_EQ(blocks.read(), expected[next]) << "seed " << seed << " step " << step;
      ASSERT_EQ(images[current].back(), std::byte{0xA5});
      for (std::size_t at = 0; at < kBytes; ++at) {
        const bool inside = std::ranges::any_of(blocks.ranges, [&](const TlsRange& range) {
          return range.module == 1 && at >= range.offset && at < range.offset + range.bytes;
        });
        if (inside) continue;
        ASSERT_EQ(blocks.live[1][at], outside[at]) << "a byte that belongs to nobody, at " << at;
      }
      current = next;
    }
  }
}

TEST_P(TlsExchanges, UnchangedState_TakesNoPiecesIntoUse) {
  std::mt19937 random(1);
  Blocks blocks({{0, 0, 336}, {1, 40, 200}}, 400, random);
  TlsExchange tls = blocks.exchange();
  Bytes here(tls.image_bytes()), there(tls.image_bytes());
  tls.create(there.data());
  GetParam()(tls, here.data(), there.data());
  EXPECT_EQ(tls.pieces_in_use(), 0u);
}

// Switches copy only the 32-byte pieces that are in use. If a piece came into use while a fiber was suspended, the
// fiber finds a new thread's values in it.
TEST_P(TlsExchanges, PieceThatCameIntoUseMeanwhile_IsInitialInOlderImages) {
  std::mt19937 random(1);
  Blocks blocks({{0, 0, 336}, {1, 40, 200}}, 400, random);
  TlsExchange tls = blocks.exchange();
  Bytes first(tls.image_bytes()), second(tls.image_bytes());
  tls.create(second.data());
  const Bytes initial = blocks.read();
  GetParam()(tls, first.data(), second.data());
  for (std::byte& byte : blocks.live[0]) byte ^= std::byte{1};
  const Bytes changed = blocks.read();
  GetParam()(tls, second.data(), first.data());
  EXPECT_EQ(tls.pieces_in_use(), 11u);  // the range of 336 bytes, in pieces of 32
  EXPECT_EQ(blocks.read(), initial);
  GetParam()(tls, first.data(), second.data());
  EXPECT_EQ(blocks.read(), changed);
}

INSTANTIATE_TEST_SUITE_P(Both, TlsExchanges, ::testing::Values(&exchange_best, &TlsExchange::exchange_portable));

TEST(TlsExchange, NoRanges_ExchangesNothing) {
  TlsExchange tls({}, {}, {});
  Bytes here(tls.image_bytes()), there(tls.image_bytes());
  tls.create(there.data());
  tls.exchange(here.data(), there.data());
  EXPECT_EQ(here, there);
}

}  // namespace
}  // namespace rehearse::torch_state
