// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <string>

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>
#include <ATen/core/stack.h>
#include <gtest/gtest.h>

#include <rehearse_internal/shapes/sym_node.h>

#include "capture/fake/call/tensors_in.h"
#include "operator_case.h"

// Finds every ATen operator that needs no arguments but one to three tensors, and writes to none of them. Calls each of
// these operators on fakes and on real tensors, and compares the layouts of the results.
namespace rehearse::capture::test {
namespace {

using torch::jit::Stack;

bool is_tensor(const c10::Type& type) { return type.isSubtypeOf(*c10::TensorType::get()); }

// Returns the number of tensor arguments. All other arguments take their defaults. Returns nothing if another argument
// has no default, if the operator writes to an argument, or if it takes no tensor or more than three.
std::optional<std::size_t> tensors_wanted(const c10::FunctionSchema& schema) {
  std::size_t tensors = 0;
  for (const c10::Argument& argument : schema.arguments()) {
    if (argument.alias_info() && argument.alias_info()->isWrite()) return std::nullopt;
    if (is_tensor(*argument.type())) {
      ++tensors;
    } else if (!argument.default_value()) {
      return std::nullopt;
    }
  }
  return tensors > 0 && tensors <= 3 ? std::optional(tensors) : std::nullopt;
}

Stack arguments_of(const c10::FunctionSchema& schema, const Tensors& tensors) {
  Stack stack;
  std::size_t next = 0;
  for (const c10::Argument& argument : schema.arguments()) {
    if (is_tensor(*argument.type())) {
      stack.emplace_back(tensors[next++]);
    } else {
      stack.push_back(*argument.default_value());
    }
  }
  return stack;
}

Tensors tensors_of(const Stack& stack) {
  Tensors tensors;
  for (const c10::IValue& value : stack) {
    for_each_tensor(value, [&](const at::Tensor& tensor) { tensors.push_back(tensor); });
  }
  return tensors;
}

// The results of the operator for these inputs; nothing if the call throws.
std::optional<Tensors> call(const c10::OperatorHandle& op, const Tensors& inputs) {
  Stack stack = arguments_of(op.schema(), inputs);
  try {
    op.callBoxed(stack);
  } catch (const std::exception&) {
    return std::nullopt;
  }
  return tensors_of(stack);
}

std::vector<std::int64_t> at_size(c10::SymIntArrayRef values, std::int64_t size) {
  std::vector<std::int64_t> numbers;
  for (const c10::SymInt& value : values) {
    numbers.push_back(shapes::expr_of(value).evaluate([size](const std::string&) { return size; }).value());
  }
  return numbers;
}

// Describes the tensor, with `size` as the value of every symbol.
std::string text_of(const at::Tensor& tensor, std::int64_t size) {
  if (!tensor.defined()) return "undefined";
  std::ostringstream out;
  out << tensor.scalar_type() << at::IntArrayRef(at_size(tensor.sym_sizes(), size)) << " strides "
      << at::IntArrayRef(at_size(tensor.sym_strides(), size)) << " offset "
      << at_size({tensor.sym_storage_offset()}, size)[0];
  return out.str();
}

std::vector<std::string> texts_of(const Tensors& tensors, std::int64_t size) {
  std::vector<std::string> texts;
  for (const at::Tensor& tensor : tensors) texts.push_back(text_of(tensor, size));
  return texts;
}

struct Findings {
  std::size_t equal = 0;
  std::set<std::string> different, not_told, specialised;
};

// Describes the inputs of one call: `count` equal tensors. inputs_at() and fakes_of() make them for a given size.
struct Inputs {
  std::size_t count;
  std::size_t dimensions;
  c10::ScalarType dtype;
};

at::Tensor shaped(const at::Tensor& base, std::size_t dimensions) {
  if (dimensions == 3) return base;
  const at::Tensor plane = base.select(2, 0).contiguous();
  return dimensions == 2 ? plane : plane.select(0, 0);
}

Tensors inputs_at(const Inputs& inputs, std::int64_t size) {
  const at::Tensor base = at::full({size, size, 3}, 0.5).to(inputs.dtype).transpose(0, 1);
  return Tensors(inputs.count, shaped(base, inputs.dimensions));
}

Tensors fakes_of(const Inputs& inputs, const c10::SymInt& size) {
  TensorSpec spec;
  spec.sizes = {size, size, 3};
  spec.strides = contiguous_strides(spec.sizes);
  spec.dtype = inputs.dtype;
  Tensors fakes;
  for (std::size_t i = 0; i < inputs.count; ++i) {
    fakes.push_back(shaped(make_fake(spec).transpose(0, 1), inputs.dimensions));
  }
  return fakes;
}

bool is_plain(const Tensors& tensors) {
  return std::all_of(tensors.begin(), tensors.end(), [](const at::Tensor& tensor) {
    return !tensor.defined() || (tensor.layout() == at::kStrided && !tensor.is_quantized() && !tensor.is_meta());
  });
}

constexpr std::int64_t kSizeAtHint = 4;

void compare(const c10::OperatorHandle& op, const Inputs& inputs, bool symbolic, Findings& findings) {
  const std::int64_t size = symbolic ? kSizeAtHint + 3 : kSizeAtHint;
  const auto real = call(op, inputs_at(inputs, size));
  const auto real_at_hint = call(op, inputs_at(inputs, kSizeAtHint));
  if (!real || !real_at_hint || real->empty() || !is_plain(*real)) return;
  const std::string name = c10::toString(op.operator_name());
  const auto shapes = shapes::ShapeEnv::make();
  FakeMode mode(symbolic ? shapes : nullptr);
  const FakeMode::Scope scope(mode);
  const auto fake =
      call(op, fakes_of(inputs, symbolic ? shapes->add_backed(kSizeAtHint, "x.size(0)") : c10::SymInt(kSizeAtHint)));
  if (!shapes->unbacked().empty()) return;  // other tests cover sizes that depend on data
  const auto& guards = shapes->guards();
  if (!fake) {
    findings.not_told.insert(name);
  } else if (std::any_of(guards.begin(), guards.end(), [](const auto& guard) { return guard.specialises; })) {
    findings.specialised.insert(name);
  } else if (texts_of(*fake, size) == texts_of(*real, size)) {
    ++findings.equal;
  } else {
    findings.different.insert(name);
    for (const std::string& text : texts_of(*real, size)) std::cerr << name << " real " << text << "\n";
    for (const std::string& text : texts_of(*fake, size)) std::cerr << name << " fake " << text << "\n";
  }
}

Findings sweep(bool symbolic) {
  Findings findings;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    const auto wanted = op && name.name.rfind("aten::", 0) == 0 ? tensors_wanted(op->schema()) : std::nullopt;
    if (!wanted) continue;
    for (const c10::ScalarType dtype : {at::kFloat, at::kLong}) {
      if (symbolic && dtype == at::kLong) continue;  // sizes do not depend on the dtype
      for (const std::size_t dimensions : {1, 2, 3}) compare(*op, {*wanted, dimensions, dtype}, symbolic, findings);
    }
  }
  return findings;
}

// Fakes refuse these operators. Most of these operators read data, for example to know the sizes of their results. Some
// have packed formats, for which fakes have no kernel.
constexpr const char* kNotTold[] = {"_saturate_weight_to_fp16",
                                    "_shape_as_tensor",
                                    "_unique",
                                    "_unique2",
                                    "argwhere",
                                    "bincount",
                                    "combinations",
                                    "corrcoef",
                                    "cov",
                                    "fbgemm_linear_quantize_weight",
                                    "fbgemm_pack_gemm_matrix_fp16",
                                    "linalg_lstsq",
                                    "linalg_matrix_rank.tol_tensor",
                                    "nanquantile",
                                    "nonzero",
                                    "nonzero_numpy",
                                    "one_hot",
                                    "quantile",
                                    "repeat_interleave.Tensor",
                                    "repeat_interleave.self_Tensor",
                                    "set.source_Tensor",
                                    "tensor_split.tensor_indices_or_sections",
                                    "unique_consecutive",
                                    "where"};

// If sizes are symbols, fakes refuse only these operators of the list above. Most of the other operators of that list
// then return results whose sizes are unbacked symbols.
constexpr const char* kNotToldWithSymbols[] = {"_saturate_weight_to_fp16",
                                               "_shape_as_tensor",
                                               "bincount",
                                               "corrcoef",
                                               "cov",
                                               "fbgemm_linear_quantize_weight",
                                               "fbgemm_pack_gemm_matrix_fp16",
                                               "linalg_lstsq",
                                               "nanquantile",
                                               "one_hot",
                                               "quantile",
                                               "tensor_split.tensor_indices_or_sections",
                                               "unique_consecutive",
                                               "set.source_Tensor"};

// These operators replace a symbol by its number, because LibTorch's composite kernel asks for a plain number, or
// because the sizes of the result fit none of the expressions that sampling tries.
constexpr const char* kSpecialised[] = {"_linalg_svd",
                                        "_lu_with_info",
                                        "_pdist_forward",
                                        "_scaled_dot_product_attention_math",
                                        "_sparse_mm",
                                        "cross_entropy_loss",
                                        "geqrf",
                                        "gradient.scalarint",
                                        "kron",
                                        "linalg_cond",
                                        "linalg_lu",
                                        "linalg_lu_factor_ex",
                                        "linalg_pinv.rcond_tensor",
                                        "linalg_polar",
                                        "linalg_qr",
                                        "linalg_svd",
                                        "linalg_svdvals",
                                        "matrix_exp_backward",
                                        "norm_except_dim",
                                        "nuclear_norm",
                                        "pdist",
                                        "qr",
                                        "scaled_dot_product_attention",
                                        "svd",
                                        "unbind.int",
                                        "unbind_copy.int",
                                        "vander"};

// The number of dimensions of this operator's result depends on the tolerance.
constexpr const char* kDifferent[] = {"linalg_matrix_rank.tol_tensor"};

std::set<std::string> names(std::span<const char* const> all) {
  std::set<std::string> result;
  for (const char* const name : all) result.insert(std::string("aten::") + name);
  return result;
}

std::set<std::string> beyond(const std::set<std::string>& found, std::span<const char* const> known) {
  const std::set<std::string> expected = names(known);
  std::set<std::string> rest;
  std::set_difference(found.begin(), found.end(), expected.begin(), expected.end(), std::inserter(rest, rest.end()));
  return rest;
}

TEST(EveryOperator, OfTensorsAlone_GivesWhatEagerGives) {
  const Findings findings = sweep(false);
  EXPECT_GT(findings.equal, 2000U);
  EXPECT_EQ(findings.different, std::set<std::string>());
  EXPECT_EQ(beyond(findings.not_told, kNotTold), std::set<std::string>());
}

TEST(EveryOperator, OfTensorsAlone_GivesWhatEagerGivesAtAnotherSize) {
  const Findings findings = sweep(true);
  EXPECT_GT(findings.equal, 1000U);
  EXPECT_EQ(beyond(findings.different, kDifferent), std::set<std::string>());
  EXPECT_EQ(beyond(findings.not_told, kNotToldWithSymbols), std::set<std::string>());
  EXPECT_EQ(beyond(findings.specialised, kSpecialised), std::set<std::string>());
}

}  // namespace
}  // namespace rehearse::capture::test
