// SPDX-License-Identifier: BSD-3-Clause
// A program whose graph contains code of the program itself.
#include <ATen/ops/ones.h>

#include <rehearse/capture/opaque.h>
#include <rehearse/compile/compile.h>
#include <rehearse/job/program.h>
#include <rehearse/job/rank_context.h>

namespace opaque_code {
namespace {

using namespace rehearse;

int g_scale = 0;

// The graph's node must run the rank's own copy of the function, which reads the rank's own global.
REHEARSE_PROGRAM(runs_opaque_code){
    .summary = "compiled code reads a global", .body = [](RankContext& ctx, const Parameters&) {
      const auto scale = [](const at::Tensor& x) { return opaque([](const at::Tensor& y) { return y * g_scale; }, x); };
      for (const char* const backend : {"eager", "aot_eager"}) {
        auto compiled = compile(scale, {.backend = backend});
        for (int call = 0; call < 3; ++call) {
          g_scale = 10 * ctx.rank() + call;
          ctx.group().barrier()->wait();
          ctx.expect(compiled(at::ones({4})).sum().item<double>() == 4.0 * g_scale, "the global is the rank's own");
        }
      }
    }};

}  // namespace
}  // namespace opaque_code
