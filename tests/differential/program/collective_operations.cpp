// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/comm/functional.h>
#include <rehearse/compile/watch.h>

#include "differential/program/net.h"
#include "differential/program/operation.h"

namespace rehearse_test::differential {
namespace {

using G = const Given&;
namespace functional = rehearse::functional;

// The generator has no ranks, so it runs programs as two equal ranks would.
bool alone(G g) { return !g.net->mesh; }

const rehearse::Group& group(G g) { return rehearse::watch(g.net->group); }
const rehearse::DeviceMesh& mesh(G g) { return rehearse::watch(*g.net->mesh); }

at::Tensor reduced_in_place(G g) {
  at::Tensor sum = g[0].detach() * 2;
  if (alone(g)) return sum * 2;
  group(g).allreduce(sum)->wait();
  return sum;
}

at::Tensor reduced_meanwhile(G g) {
  at::Tensor sum = g[0].detach() * 2;
  if (alone(g)) return g[0].sin() * sum * 2;
  const auto work = group(g).allreduce(sum);
  const at::Tensor meanwhile = g[0].sin();
  work->wait();
  return meanwhile * sum;
}

const Operation kCollectiveOperations[] = {
    {"all_reduce",
     "collective",
     "f",
     1,
     {},
     "functional::all_reduce($0, group)",
     [](G g) -> Tensors { return {alone(g) ? g[0] * 2 : functional::all_reduce(g[0], group(g))}; }},
    {"all_gather",
     "collective",
     "f",
     1,
     {},
     "functional::all_gather_tensor($0.detach(), group)",
     [](G g) -> Tensors {
       return {alone(g) ? at::cat({g[0], g[0]}).detach() : functional::all_gather_tensor(g[0].detach(), group(g))};
     }},
    {"broadcast",
     "collective",
     "f",
     1,
     {},
     "functional::broadcast($0.detach(), group, 1)",
     [](G g) -> Tensors { return {alone(g) ? g[0].detach() * 1 : functional::broadcast(g[0].detach(), group(g), 1)}; }},
    {"reduce_scatter",
     "collective",
     "f",
     1,
     {},
     "functional::reduce_scatter_tensor(at::cat({$0, $0}), group)",
     [](G g) -> Tensors {
       return {alone(g) ? g[0] * 2 : functional::reduce_scatter_tensor(at::cat({g[0], g[0]}), group(g))};
     }},
    {"allreduce in place",
     "collective",
     "f",
     1,
     {},
     "[] { s = $0.detach() * 2; group.allreduce(s)->wait(); return s; }()",
     [](G g) -> Tensors { return {reduced_in_place(g)}; }},
    {"allreduce, waited for late",
     "collective",
     "f",
     1,
     {},
     "[] { s = $0.detach() * 2; w = group.allreduce(s); q = $0.sin(); w->wait(); return q * s; }()",
     [](G g) -> Tensors { return {reduced_meanwhile(g)}; }},
    {"all_reduce along a mesh",
     "collective",
     "f",
     1,
     {},
     "functional::all_reduce($0, mesh.group(\"tp\"))",
     [](G g) -> Tensors { return {alone(g) ? g[0] * 2 : functional::all_reduce(g[0], mesh(g).group("tp"))}; }},
    {"all_reduce within one rank of a mesh",
     "collective",
     "f",
     1,
     {},
     "functional::all_reduce($0, mesh.group(\"dp\"))",
     [](G g) -> Tensors { return {alone(g) ? g[0] * 1 : functional::all_reduce(g[0], mesh(g).group("dp"))}; }},
    {"numbers of a mesh",
     "collective",
     "f",
     1,
     {},
     "$0 * mesh.size(\"tp\") + mesh.local_rank(\"dp\")",
     [](G g) -> Tensors { return {alone(g) ? g[0] * 2 + 0 : g[0] * mesh(g).size("tp") + mesh(g).local_rank("dp")}; }},
};

}  // namespace

Operations collective_operations() { return {std::begin(kCollectiveOperations), std::end(kCollectiveOperations)}; }

}  // namespace rehearse_test::differential
