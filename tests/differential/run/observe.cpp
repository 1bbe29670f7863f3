// SPDX-License-Identifier: BSD-3-Clause
#include "differential/run/observe.h"

#include <cctype>
#include <exception>
#include <sstream>

#include <ATen/CPUGeneratorImpl.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/autograd.h>

namespace rehearse_test::differential {
namespace {

constexpr std::int64_t kPrintedMax = 64;
constexpr const char* kUndefined = "undefined";

using Named = std::vector<std::pair<std::string, at::Tensor>>;

Named numbered(const std::string& name, const Tensors& tensors) {
  Named named;
  for (std::size_t i = 0; i < tensors.size(); ++i) named.emplace_back(name + " " + std::to_string(i), tensors[i]);
  return named;
}

Named state_of(const Net& net) {
  Named named;
  for (const auto& item : net.named_parameters()) named.emplace_back("parameter " + item.key(), item.value());
  for (const auto& item : net.named_buffers()) named.emplace_back("buffer " + item.key(), item.value());
  named.emplace_back("member cache", net.cache);
  named.emplace_back("member average", net.average);
  return named;
}

bool share_memory(const at::Tensor& a, const at::Tensor& b) {
  if (a.layout() != at::kStrided || b.layout() != at::kStrided) return false;
  return a.has_storage() && b.has_storage() && a.storage().nbytes() > 0 && a.is_alias_of(b);
}

class Notes {
 public:
  void text(const std::string& name, const std::string& text) { facts_.push_back({name, text, {}, true}); }
  void flag(const std::string& name, bool yes) { text(name, yes ? "yes" : "no"); }
  void values(const std::string& name, const at::Tensor& tensor, bool exact = true) {
    if (!tensor.defined()) return text(name, kUndefined);
    const std::string form = c10::toString(tensor.scalar_type()) + shape(tensor.sizes());
    if (!tensor.is_sparse() && tensor.layout() != at::kStrided) return text(name, form);
    at::Tensor copy = tensor.detach();
    if (copy.is_sparse()) copy = copy.to_dense();
    if (copy.is_quantized()) copy = copy.dequantize();
    if (copy.scalar_type() == at::kComplexHalf) copy = copy.to(at::kComplexDouble);  // cannot be compared
    facts_.push_back({name, form, copy.clone(), exact});
  }
  static std::string shape(at::IntArrayRef sizes) {
    std::ostringstream out;
    out << sizes;
    return out.str();
  }
  std::vector<Fact> take() { return std::move(facts_); }

 private:
  std::vector<Fact> facts_;
};

void note_forms(Notes& notes, const Named& tensors) {
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.defined()) continue;
    static_cast<void>(tensor.grad_fn());  // until this call, a view does not show its base's new history
    notes.flag(name + " requires_grad", tensor.requires_grad());
    notes.flag(name + " is_leaf", tensor.is_leaf());
    if (tensor.layout() != at::kStrided) {
      std::ostringstream layout;
      layout << tensor.layout();
      notes.text(name + " layout", layout.str());
      continue;
    }
    notes.text(name + " strides", Notes::shape(tensor.strides()));
    notes.text(name + " storage_offset", std::to_string(tensor.storage_offset()));
  }
}

// Notes for each result which earlier tensors share its memory, and which of them are the same tensor.
void note_sharing(Notes& notes, const Named& results, const Named& others) {
  Named before = others;
  for (const auto& [name, tensor] : results) {
    std::string shares, is;
    for (const auto& [other_name, other] : before) {
      if (!tensor.defined() || !other.defined()) continue;
      if (share_memory(tensor, other)) shares += " " + other_name + ",";
      if (tensor.is_same(other)) is += " " + other_name + ",";
    }
    notes.text(name + " shares memory with", shares);
    notes.text(name + " is", is);
    before.emplace_back(name, tensor);
  }
}

at::Tensor tangent_of(const at::Tensor& result) {
  return (at::arange(1, result.numel() + 1, at::kDouble) / 8).view(result.sizes()).to(result.scalar_type());
}

Tensors differentiable(const Tensors& results, const Tensors& arguments) {
  Tensors roots;
  for (const Tensors* list : {&results, &arguments}) {
    for (const at::Tensor& each : *list) {
      if (each.defined() && each.requires_grad() && !each.is_leaf()) roots.push_back(each);
    }
  }
  return roots;
}

// Returns whether any of `others` shares the tensor's memory, or is the tensor itself.
bool shares_memory(const at::Tensor& tensor, const Tensors& others) {
  return std::any_of(others.begin(), others.end(),
                     [&](const at::Tensor& other) { return other.defined() && other.is_alias_of(tensor); });
}

void change(const Around& around, const Tensors& arguments, Tensors& roots, Observed& seen) {
  const bool in_place = around.changing == Changing::InPlace;
  if (around.change == Change::Result && !roots.empty()) {
    seen.has_twins = shares_memory(roots[0], {roots.begin() + 1, roots.end()}) || shares_memory(roots[0], arguments);
    roots[0] = in_place ? roots[0].mul_(2) : roots[0] * 2;
  }
  if (around.change != Change::Argument || !in_place) return;
  const at::NoGradGuard no_grad;
  for (const at::Tensor& each : arguments) {
    if (!each.defined() || !each.is_floating_point()) continue;
    each.mul_(2);
    return;
  }
}

void go_backward(Backward how, const Tensors& roots) {
  if (roots.empty() || how == Backward::None) return;
  Tensors tangents;
  switch (how) {
    case Backward::AllTogether:
      for (const at::Tensor& root : roots) tangents.push_back(tangent_of(root));
      return torch::autograd::backward(roots, tangents);
    case Backward::SumOfAll: {
      at::Tensor sum = roots[0].sum();
      for (std::size_t i = 1; i < roots.size(); ++i) sum = sum + roots[i].sum() * static_cast<double>(i + 1);
      return torch::autograd::backward({sum});
    }
    case Backward::FirstAlone:
      return torch::autograd::backward({roots[0]}, {tangent_of(roots[0])});
    case Backward::OneByOne:
      for (const at::Tensor& root : roots) torch::autograd::backward({root}, {tangent_of(root)}, true);
      return;
    case Backward::None:
      return;
  }
}

// Arguments and state must not begin to require gradients, neither in the call nor in the backward.
void note_flags(Notes& notes, const Named& tensors) {
  for (const auto& [name, tensor] : tensors) {
    if (tensor.defined()) notes.flag(name + " requires_grad afterwards", tensor.requires_grad());
  }
}

std::vector<std::int64_t> versions_of(const Tensors& tensors) {
  std::vector<std::int64_t> versions;
  for (const at::Tensor& each : tensors)
    versions.push_back(each.defined() && !each.is_inference() ? each._version() : 0);
  return versions;
}

// Whether the call counts as a change of an argument. (How many changes it counts as may differ: docs/COMPILE.md.)
void note_changes(Notes& notes, const Tensors& arguments, const std::vector<std::int64_t>& before) {
  const auto now = versions_of(arguments);
  for (std::size_t i = 0; i < now.size(); ++i)
    notes.flag("argument " + std::to_string(i) + " has another version", now[i] != before[i]);
}

void note_gradients(Notes& notes, const Inputs& inputs, const Named& state) {
  const Named leaves = numbered("gradient of leaf", inputs.leaves);
  for (const auto& [name, tensor] : leaves) notes.values(name, tensor.grad(), false);
  for (const auto& [name, tensor] : numbered("gradient of argument", inputs.arguments)) {
    if (tensor.is_leaf()) notes.values(name, tensor.grad(), false);
  }
  for (const auto& [name, tensor] : state) {
    if (tensor.defined() && tensor.is_leaf() && tensor.requires_grad())
      notes.values("gradient of " + name, tensor.grad(), false);
  }
}

std::string without_frames(const std::string& error) { return error.substr(0, error.find("\nException raised from")); }

bool close(const at::Tensor& a, const at::Tensor& b, double tolerance) {
  const at::Tensor x = a.to(at::kDouble), y = b.to(at::kDouble);
  const double scale = y.numel() == 0 ? 1 : std::max(1.0, y.nan_to_num(0, 0, 0).abs().max().item<double>());
  return at::allclose(x, y, 0, tolerance * scale, /*equal_nan=*/true);
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor same = a.eq(b).logical_and_(a.signbit().eq(b.signbit()));
  return same.logical_or_(a.isnan().logical_and_(b.isnan())).all().item<bool>();
}

bool same_values(const Fact& eager, const Fact& compiled, double tolerance) {
  if (!eager.values.defined() || !compiled.values.defined()) return true;
  if (!eager.exact) return close(compiled.values, eager.values, tolerance);
  const auto dtype = eager.values.scalar_type();
  if (dtype == at::kDouble || dtype == at::kFloat) return same_bits(eager.values, compiled.values);
  return at::equal(eager.values, compiled.values) ||
         at::allclose(eager.values, compiled.values, 0, 0, /*equal_nan=*/true);
}

std::string text_of(const Fact& fact) {
  std::ostringstream out;
  out << fact.text;
  if (fact.values.defined() && fact.values.numel() <= kPrintedMax) out << "\n" << fact.values;
  return out.str();
}

bool is_undefined(const Fact& fact) { return fact.text == kUndefined; }

bool is_zeros(const Fact& fact) { return fact.values.defined() && fact.values.eq(0).all().item<bool>(); }

Difference difference_of(const Fact& eager, const Fact& compiled) {
  const bool only_values = eager.values.defined() && compiled.values.defined() && eager.text == compiled.text;
  const std::string what = only_values ? " values" : "";
  return {"wrong " + kind_of(eager.name) + what,
          eager.name + ":\neager " + text_of(eager) + "\ncompiled " + text_of(compiled), eager.name,
          (is_undefined(eager) && is_zeros(compiled)) || (is_zeros(eager) && is_undefined(compiled))};
}

}  // namespace

std::string kind_of(const std::string& error) {
  std::string kind;
  for (const char c : error.substr(0, error.find('\n'))) {
    if (!std::isdigit(static_cast<unsigned char>(c))) kind += c;
  }
  return kind.substr(0, 90);
}

Observed observe(const Inputs& inputs, const Around& around, const std::function<Tensors(const Tensors&)>& forward) {
  Observed seen;
  Notes notes;
  try {
    at::manual_seed(around.draws);
    Tensors results;
    const auto versions = versions_of(inputs.arguments);
    seen.thrown_in = "forward";
    {
      const at::AutoGradMode mode(around.grad);
      results = forward(inputs.arguments);
    }
    notes.values("generator", at::detail::getDefaultCPUGenerator().get_state());
    const Named arguments = numbered("argument", inputs.arguments), named = numbered("result", results);
    const Named state = around.net == nullptr ? Named() : state_of(*around.net);
    notes.text("number of results", std::to_string(results.size()));
    note_forms(notes, named);
    note_forms(notes, arguments);
    note_changes(notes, inputs.arguments, versions);
    Named others = arguments;
    others.insert(others.end(), state.begin(), state.end());
    note_sharing(notes, named, others);
    for (const Named* list : {&named, &arguments, &state}) {
      for (const auto& [name, tensor] : *list) notes.values(name, tensor);
    }
    seen.thrown_in = "backward";
    Tensors roots = differentiable(results, inputs.arguments);
    change(around, inputs.arguments, roots, seen);
    go_backward(around.backward, roots);
    note_flags(notes, arguments);
    note_flags(notes, state);
    note_gradients(notes, inputs, state);
    seen.thrown_in.clear();
  } catch (const c10::Error& error) {
    seen.error = error.what_without_backtrace();  // finding frame names takes longer than the call
  } catch (const std::exception& error) {
    seen.error = without_frames(error.what());
  }
  seen.facts = notes.take();
  return seen;
}

Observed observe(const Program& program, const CallSpec& call, Net& net, const Forward& forward, Changing changing) {
  net.train(call.training);
  const Around around{program.backward, program.change, changing, &net, call.data, call.grad};
  std::int64_t steps = call.steps;
  Observed seen = observe(make_inputs(program, call), around,
                          [&](const Tensors& arguments) { return forward(arguments, call.count, steps); });
  if (seen.error.empty()) seen.facts.push_back({"argument steps", std::to_string(steps), {}});
  if (has_singles(program)) seen.tolerance = 1e-4;
  net.zero_grad();
  return seen;
}

std::set<std::string> undefined_gradients(const Observed& seen) {
  std::set<std::string> names;
  for (const Fact& fact : seen.facts) {
    const bool is_of_ddp = fact.name.starts_with("gradient of parameter") || fact.name.starts_with("gradient of leaf");
    if (is_of_ddp && is_undefined(fact)) names.insert(fact.name);
  }
  return names;
}

std::optional<Difference> compare(const Observed& eager, const Observed& compiled) {
  if (eager.thrown_in != compiled.thrown_in) {
    if (compiled.thrown_in.empty() || (eager.thrown_in == "forward" && compiled.thrown_in == "backward")) {
      return Difference{"does not throw: " + kind_of(eager.error),
                        "eager throws in " + eager.thrown_in + ": " + eager.error};
    }
    return Difference{"throws in " + compiled.thrown_in + ": " + kind_of(compiled.error), compiled.error};
  }
  const std::size_t facts = std::min(eager.facts.size(), compiled.facts.size());
  for (std::size_t i = 0; i < facts; ++i) {
    const Fact &a = eager.facts[i], &b = compiled.facts[i];
    if (a.name != b.name || a.text != b.text || !same_values(a, b, eager.tolerance)) return difference_of(a, b);
  }
  if (eager.facts.size() != compiled.facts.size())
    return Difference{"wrong number of facts", "another number of results"};
  return std::nullopt;
}

}  // namespace rehearse_test::differential
