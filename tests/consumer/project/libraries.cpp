// SPDX-License-Identifier: BSD-3-Clause
// A program that uses neither rehearse::check() nor rehearse::main. It links three libraries, and runs a world itself.
#include <iostream>
#include <memory>

#include <rehearse/fakes/fake_store.h>
#include <rehearse/graph/graph.h>
#include <rehearse/job/rank_context.h>
#include <rehearse/sim/world.h>

int main() {
  rehearse::fakes::FakeStore store(std::make_shared<rehearse::fakes::StoreState>());
  store.set("key", std::vector<std::uint8_t>{7});
  rehearse::graph::Graph graph;
  graph.placeholder("x");

  rehearse::World world({.ranks = 4, .seed = 7});
  const auto report = world.run([](rehearse::RankContext& ctx) {
    auto sum = at::full({1}, ctx.rank());
    ctx.group().allreduce(sum)->wait();
    ctx.expect(sum.item<int>() == 0 + 1 + 2 + 3, "the sum is right");
  });
  std::cout << "verdict=" << to_string(report.verdict) << " held=" << report.checks.at("the sum is right")
            << " stored=" << static_cast<int>(store.get("key").at(0)) << " nodes=" << graph.size() << '\n';
}
