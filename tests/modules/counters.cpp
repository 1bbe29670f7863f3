// SPDX-License-Identifier: BSD-3-Clause
// Programs that keep state in globals, statics and thread_locals.
#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/ops/ones.h>

#include <rehearse/job/program.h>
#include <rehearse/job/rank_context.h>

#include "counters.h"

namespace counters {
namespace {

using namespace rehearse;

int g_counter = 0;
std::vector<std::string> g_names{"first"};
thread_local int t_counter = 0;
thread_local std::vector<int> t_list;
const at::Tensor g_tensor = at::ones({4});

class OwnError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

int count_all() {
  static std::vector<int> calls;
  calls.push_back(1);
  g_names.emplace_back("more");
  t_list.push_back(1);
  const int counters[] = {++g_counter,
                          ++t_counter,
                          ++in_a_header,
                          ++in_a_function(),
                          ++OfATemplate<int>::counter,
                          static_cast<int>(calls.size()),
                          static_cast<int>(g_names.size()) - 1,
                          static_cast<int>(t_list.size())};
  int sum = 0;
  for (const int counter : counters) sum += counter;
  return sum;
}

REHEARSE_PROGRAM(counts){.summary = "each rank counts for itself", .body = [](RankContext& ctx, const Parameters&) {
                           for (int step = 1; step <= 3; ++step) {
                             ctx.group().barrier()->wait();
                             ctx.expect(count_all() == 8 * step, "each rank counts for itself");
                           }
                         }};

REHEARSE_PROGRAM(reduces){.summary = "reduces a global tensor", .body = [](RankContext& ctx, const Parameters&) {
                            ctx.group().allreduce(g_tensor)->wait();
                            ctx.expect(g_tensor.sum().item<double>() == 4.0 * ctx.size(), "the sum is right");
                          }};

REHEARSE_PROGRAM(throws){.summary = "throws what it has defined", .body = [](RankContext& ctx, const Parameters&) {
                           ctx.group().barrier()->wait();
                           if (ctx.rank() == 1) throw OwnError("thrown by rank 1");
                           ctx.group().barrier()->wait();
                         }};

}  // namespace
}  // namespace counters
