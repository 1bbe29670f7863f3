// SPDX-License-Identifier: BSD-3-Clause
// determinism_driver <first> <last>: runs one job under each seed from <first> to <last>, upwards or downwards. Prints
// the addresses of the process's stack and code. Then, for each seed, prints the run's verdict and identity, and a hash
// over the bits that all ranks computed.
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>
#include <rehearse/sim/world.h>
#include <rehearse_internal/hash/fnv1a.h>

namespace {

using rehearse::RankContext;

// The tensors of one rank at the end.
using Results = std::vector<at::Tensor>;

// Uses everything that could leak an address or the wall clock into a run: collectives on two groups, receives from any
// source, the store, random numbers, jitter.
Results job(RankContext& ctx) {
  const auto& world = ctx.group();
  const int ranks = world.size();
  const auto half = ctx.new_group({0, 2}, "even");
  auto value = at::rand({64}) * (ctx.rank() + 1);
  world.allreduce(value)->wait();
  if (half) half.allreduce(value)->wait();
  Results results = {value.clone()};
  auto pending = world.broadcast(value, 1);
  if (ctx.rank() == 0) {
    for (int i = 1; i < ranks; ++i) {
      results.push_back(at::zeros({4}));
      std::vector<at::Tensor> pieces = {results.back()};
      world->recvAnysource(pieces, 0)->wait();
    }
  } else {
    world.send(at::rand({4}) * ctx.rank(), 0)->wait();
  }
  pending->wait();
  results.push_back(value);
  ctx.store()->set("rank" + std::to_string(ctx.rank()), std::vector<std::uint8_t>{1});
  ctx.store()->get("rank" + std::to_string((ctx.rank() + 1) % ranks));
  world.barrier()->wait();
  results.push_back(at::rand({4}));  // shows the state of the rank's generator
  return results;
}

std::uint64_t hash_of(const std::vector<Results>& of_ranks) {
  rehearse::Fnv1a hash;
  for (const auto& results : of_ranks) {
    for (const auto& tensor : results) {
      hash.add({static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()});
    }
  }
  return hash.value();
}

void run_and_print(int seed) {
  rehearse::WorldOptions options;
  options.ranks = 4;
  options.seed = static_cast<std::uint64_t>(seed);
  options.network.jitter = 0.5;
  std::vector<Results> results(static_cast<std::size_t>(options.ranks));
  rehearse::World world(options);
  const auto report = world.run([&](RankContext& ctx) { results[static_cast<std::size_t>(ctx.rank())] = job(ctx); });
  std::printf("%d %s %016llx %016llx\n", seed, std::string(to_string(report.verdict)).c_str(),
              static_cast<unsigned long long>(report.identity), static_cast<unsigned long long>(hash_of(results)));
}

bool read_number(const char* text, int& number) {
  return std::from_chars(text, text + std::strlen(text), number).ec == std::errc();
}

}  // namespace

int main(int argc, char** argv) {
  int first = 0, last = 0;
  if (argc != 3 || !read_number(argv[1], first) || !read_number(argv[2], last)) return 64;
  std::printf("%p %p\n", static_cast<void*>(&first), reinterpret_cast<void*>(&run_and_print));
  const int step = first <= last ? 1 : -1;
  for (int seed = first; seed != last + step; seed += step) run_and_print(seed);
  return 0;
}
