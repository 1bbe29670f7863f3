// SPDX-License-Identifier: BSD-3-Clause
// Non-contiguous tensors. Gloo uses the memory of some tensors directly, and makes ordered copies of other tensors.
#include "parity_case.h"

namespace rehearse::parity {
namespace layouts {
namespace {

using Group = const ProcessGroup&;
using Layout = at::Tensor (*)(const at::Tensor& values);

// Columns of a wider tensor.
at::Tensor with_gaps(const at::Tensor& values) {
  auto sizes = values.sizes().vec();
  sizes.back() += 3;
  const auto columns = at::full(sizes, 7, values.options()).narrow(values.dim() - 1, 1, values.size(-1));
  return columns.copy_(values);
}

at::Tensor transposed(const at::Tensor& values) { return values.t().contiguous().t(); }
at::Tensor channels_last(const at::Tensor& values) { return values.contiguous(at::MemoryFormat::ChannelsLast); }
at::Tensor as_it_is(const at::Tensor& values) { return values.clone(); }

at::Tensor of(Group group, at::IntArrayRef sizes = {6, 4}) { return exact(sizes, at::kFloat, group->getRank()); }

Tensors repeated(Group group, const at::Tensor& tensor, Layout layout) {
  Tensors tensors;
  for (int r = 0; r < group->getSize(); ++r) tensors.push_back(layout(tensor + r));
  return tensors;
}

Tensors allreduce(Group group, Tensors tensors) { return group->allreduce(tensors)->wait(), tensors; }
Tensors broadcast(Group group, Tensors tensors) { return group->broadcast(tensors)->wait(), tensors; }

Tensors reduce(Group group, Tensors tensors) {
  group->reduce(tensors)->wait();
  return group->getRank() == 0 ? tensors : Tensors{};  // gloo leaves arbitrary values on other ranks
}

Tensors allreduce_coalesced(Group group, Tensors tensors) {
  group->allreduce_coalesced(tensors)->wait();
  return tensors;
}

Tensors allgather(Group group, Layout in, Layout out) {
  Tensors inputs{in(of(group))};
  std::vector<Tensors> outputs{repeated(group, of(group), out)};
  group->allgather(outputs, inputs)->wait();
  return outputs[0];
}

Tensors allgather_base(Group group, Layout in, Layout out) {
  auto input = in(of(group)), output = out(at::zeros({6 * group->getSize(), 4}));
  group->_allgather_base(output, input)->wait();
  return {output};
}

Tensors gather(Group group, Layout in, Layout out) {
  Tensors inputs{in(of(group))};
  std::vector<Tensors> outputs;
  if (group->getRank() == 0) outputs.push_back(repeated(group, of(group), out));
  group->gather(outputs, inputs)->wait();
  return outputs.empty() ? Tensors{} : outputs[0];
}

Tensors scatter(Group group, Layout in, Layout out) {
  Tensors outputs{out(at::zeros({6, 4}))};
  std::vector<Tensors> inputs;
  if (group->getRank() == 0) inputs.push_back(repeated(group, of(group), in));
  group->scatter(outputs, inputs)->wait();
  return outputs;
}

Tensors reduce_scatter(Group group, Layout in, Layout out, at::IntArrayRef sizes = {6, 4}) {
  Tensors outputs{out(at::zeros(sizes))};
  std::vector<Tensors> inputs{repeated(group, of(group, sizes), in)};
  group->reduce_scatter(outputs, inputs)->wait();
  return outputs;
}

Tensors reduce_scatter_base(Group group, Layout in, Layout out) {
  auto input = in(of(group, {6 * group->getSize(), 4})), output = out(at::zeros({6, 4}));
  group->_reduce_scatter_base(output, input)->wait();
  return {output};
}

Tensors alltoall(Group group, Layout in, Layout out, at::IntArrayRef sizes) {
  auto input = in(of(group, sizes)), output = out(at::zeros(sizes));
  std::vector<std::int64_t> no_splits;
  group->alltoall_base(output, input, no_splits, no_splits)->wait();
  return {output};
}

Tensors send_in_a_ring(Group group, Layout layout) {
  Tensors sent{layout(of(group))};
  return group->send(sent, (group->getRank() + 1) % group->getSize(), 0)->wait(), Tensors{};
}

// In the cases marked `lax`, gloo would silently use the memory at the wrong places. Every rank must refuse these calls
// and go on.
void add_gaps(std::vector<Case>& cases) {
  const auto lax = Expected::gloo_is_lax;
  cases.push_back({"allreduce with gaps", [](Group g) { return allreduce(g, {with_gaps(of(g))}); }, lax});
  cases.push_back({"broadcast with gaps", [](Group g) { return broadcast(g, {with_gaps(of(g))}); }, lax});
  cases.push_back({"reduce with gaps", [](Group g) { return reduce(g, {with_gaps(of(g))}); }, lax});
  cases.push_back({"scatter into gaps", [](Group g) { return scatter(g, as_it_is, with_gaps); }, lax});
  cases.push_back({"reduce_scatter into gaps", [](Group g) { return reduce_scatter(g, as_it_is, with_gaps); }, lax});
  cases.push_back(
      {"reduce_scatter into another order", [](Group g) { return reduce_scatter(g, as_it_is, transposed); }, lax});
  cases.push_back({"alltoall_base into gaps", [](Group g) { return alltoall(g, as_it_is, with_gaps, {60, 2}); }, lax});
  cases.push_back({"alltoall_base of gaps", [](Group g) { return alltoall(g, with_gaps, as_it_is, {60, 2}); }});
  cases.push_back({"send with gaps", [](Group g) { return send_in_a_ring(g, with_gaps); }});
  cases.push_back({"send of a transposed tensor", [](Group g) { return send_in_a_ring(g, transposed); }});
}

std::vector<Case> all_cases() {
  std::vector<Case> cases{
      {"allreduce transposed", [](Group g) { return allreduce(g, {transposed(of(g))}); }},
      {"broadcast transposed", [](Group g) { return broadcast(g, {transposed(of(g))}); }},
      {"reduce transposed", [](Group g) { return reduce(g, {transposed(of(g))}); }},
      {"scatter transposed", [](Group g) { return scatter(g, transposed, transposed); }},
      {"reduce_scatter transposed", [](Group g) { return reduce_scatter(g, transposed, transposed); }},
      {"reduce_scatter channels_last",
       [](Group g) { return reduce_scatter(g, channels_last, channels_last, {2, 3, 2, 2}); }},
      {"reduce_scatter of gaps", [](Group g) { return reduce_scatter(g, with_gaps, as_it_is); }},
      {"alltoall_base channels_last", [](Group g) { return alltoall(g, channels_last, channels_last, {60, 3, 2, 2}); }},
      {"_reduce_scatter_base transposed", [](Group g) { return reduce_scatter_base(g, transposed, as_it_is); }},
      {"_reduce_scatter_base with gaps on rank 1",
       [](Group g) { return reduce_scatter_base(g, g->getRank() == 1 ? with_gaps : as_it_is, as_it_is); }},
      {"_reduce_scatter_base into gaps", [](Group g) { return reduce_scatter_base(g, as_it_is, with_gaps); }},
  };
  for (const auto& [name, layout] : {std::pair<const char*, Layout>("with gaps", with_gaps),
                                     std::pair<const char*, Layout>("transposed", transposed)}) {
    const std::string how = std::string(" ") + name;
    cases.push_back({"allreduce_coalesced" + how,
                     [=](Group g) { return allreduce_coalesced(g, {layout(of(g)), as_it_is(of(g)), layout(of(g))}); }});
    for (const auto& [in, out] : {std::pair<Layout, Layout>(layout, as_it_is), {as_it_is, layout}, {layout, layout}}) {
      const std::string sides = how + (in == out ? ", both" : in == as_it_is ? ", outputs" : ", input");
      cases.push_back({"allgather" + sides, [=](Group g) { return allgather(g, in, out); }});
      cases.push_back({"_allgather_base" + sides, [=](Group g) { return allgather_base(g, in, out); }});
      cases.push_back({"gather" + sides, [=](Group g) { return gather(g, in, out); }});
    }
  }
  add_gaps(cases);
  return cases;
}

}  // namespace
}  // namespace layouts

std::vector<Case> layout_cases() { return layouts::all_cases(); }

}  // namespace rehearse::parity
