// SPDX-License-Identifier: BSD-3-Clause
// find_package(rehearse) names no component here. The project links only rehearse::main, and uses the other libraries
// through it.
#include <string>

#include <rehearse/comm/object_collectives.h>
#include <rehearse/compile/compile.h>
#include <rehearse/compile/errors.h>
#include <rehearse/elastic/run.h>
#include <rehearse/job/program.h>
#include <rehearse/job/rank_context.h>

// Which of the errors that compile.h names the call throws.
template <class Compiled>
std::string kind_of_error(Compiled& compiled) {
  try {
    compiled(at::ones({2}));
  } catch (const rehearse::capture::FakeError&) {
    return "capture";
  } catch (const rehearse::shapes::ShapeError&) {
    return "shape";
  } catch (const rehearse::compiler::CompileError&) {
    return "compile";
  }
  return "none";
}

REHEARSE_PROGRAM(everything){
    .summary = "a compiled function, objects of all ranks, an elastic round",
    .body = [](rehearse::RankContext& ctx, const rehearse::Parameters&) {
      auto twice = rehearse::compile([](const at::Tensor& x) { return x + x; });
      ctx.expect(twice(at::ones({2})).equal(at::full({2}, 2)), "the compiled function adds");
      auto reads = rehearse::compile([](const at::Tensor& x) { return x.sum().item<double>(); }, {.fullgraph = true});
      ctx.expect(kind_of_error(reads) == "capture", "a read is refused");
      auto counts =
          rehearse::compile([](const at::Tensor& x) { return x.new_ones({x.nonzero().size(0)}); }, {.fullgraph = true});
      ctx.expect(kind_of_error(counts) == "shape", "a size that depends on data is refused");

      const auto objects = rehearse::comm::all_gather_object(ctx.group(), std::to_string(ctx.rank()));
      ctx.expect(objects.at(1) == "1", "rank 1 has sent its object");

      rehearse::elastic::run(ctx, [&](rehearse::elastic::Round& round) {
        ctx.expect(round.ranks().size() == 2, "the round has all ranks");
      });
    }};
