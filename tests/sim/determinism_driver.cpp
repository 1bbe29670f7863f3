// SPDX-License-Identifier: BSD-3-Clause
// determinism_driver <seeds>: runs one job under that many seeds and prints each run's identity, a line each.
#include <charconv>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>
#include <rehearse/sim/world.h>

namespace {

using rehearse::RankContext;

// A bit of everything that could leak an address or the wall clock into the way: collectives on two groups,
// receives from any source, the store, random numbers, jitter.
void job(RankContext& ctx) {
  const auto& world = ctx.group();
  const int ranks = world.size();
  const auto half = ctx.new_group({0, 2}, "even");
  auto value = at::rand({64});
  world.allreduce(value)->wait();
  if (half) half.allreduce(value)->wait();
  auto pending = world.broadcast(value, 1);
  if (ctx.rank() == 0) {
    for (int i = 1; i < ranks; ++i) {
      auto piece = at::zeros({4});
      std::vector<at::Tensor> pieces = {piece};
      world->recvAnysource(pieces, 0)->wait();
    }
  } else {
    world.send(at::rand({4}), 0)->wait();
  }
  pending->wait();
  ctx.store()->set("rank" + std::to_string(ctx.rank()), std::vector<std::uint8_t>{1});
  ctx.store()->get("rank" + std::to_string((ctx.rank() + 1) % ranks));
  world.barrier()->wait();
}

}  // namespace

int main(int argc, char** argv) {
  int seeds = 0;
  if (argc != 2 || std::from_chars(argv[1], argv[1] + std::strlen(argv[1]), seeds).ec != std::errc())
    return 64;
  for (int seed = 1; seed <= seeds; ++seed) {
    rehearse::WorldOptions options;
    options.ranks = 4;
    options.seed = static_cast<std::uint64_t>(seed);
    options.network.jitter = 0.5;
    rehearse::World world(options);
    const auto report = world.run(job);
    std::printf("%d %s %016llx\n", seed, std::string(to_string(report.verdict)).c_str(),
                static_cast<unsigned long long>(report.identity));
  }
  return 0;
}
