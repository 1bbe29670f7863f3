// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/operators/treatment.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <ATen/core/jit_type.h>

#include <rehearse_internal/graph/operators.h>

#include "capture/fake/call/operator_facts.h"

namespace rehearse::capture {
namespace {

using Names = std::unordered_set<std::string_view>;

// Operators whose floating-point results get no history from autograd (PyTorch's derivatives.yaml, and the list
// DONT_REQUIRE_DERIVATIVE of its gen_variable_type.py). Integer and bool results never have a history.
const Names& without_derivative() {
  static const Names names = {"empty_like",
                              "ones_like",
                              "full_like",
                              "zeros_like",
                              "rand_like",
                              "randn_like",
                              "new_empty",
                              "new_full",
                              "new_zeros",
                              "new_ones",
                              "detach",
                              "new_empty_strided",
                              "hash_tensor",
                              "histc",
                              "multinomial",
                              "detach_copy",
                              "_new_zeros_with_same_feature_meta",
                              "quantize_per_tensor",
                              "quantize_per_channel",
                              "_values",
                              "floor_divide",
                              "floor_divide_",
                              "lift_fresh_copy",
                              "eq",
                              "ne",
                              "lt",
                              "le",
                              "gt",
                              "ge",
                              "not_equal",
                              "less",
                              "less_equal",
                              "greater",
                              "greater_equal",
                              "logical_and",
                              "logical_or",
                              "logical_xor",
                              "logical_not",
                              "logical_and_",
                              "logical_or_",
                              "logical_xor_",
                              "_fused_sgd_",
                              "_fused_adam_",
                              "_fused_adamw_",
                              "_fused_adagrad_",
                              "_amp_foreach_non_finite_check_and_unscale_",
                              "rehearse::resize_storage",
                              "rehearse::set_version"};
  return names;
}

// True for operators that make no view and use only the sizes or the type of their second argument.
bool only_first_has_history(std::string_view name) { return name == "type_as" || name == "resize_as_"; }

// For operators that only compare an argument with numbers: its index. The argument gives the results no history.
const std::unordered_map<std::string_view, std::size_t>& compared_arguments() {
  static const std::unordered_map<std::string_view, std::size_t> known = {{"hinge_embedding_loss", 1},
                                                                          {"cosine_embedding_loss", 2}};
  return known;
}

// Says which results have a history, for operators with several results.
const std::unordered_map<std::string_view, std::vector<bool>>& differentiable_results() {
  static const std::unordered_map<std::string_view, std::vector<bool>> known = {
      {"_linalg_det", {true, false, false}},
      {"_linalg_slogdet", {true, true, false, false}},
      {"linalg_lstsq", {true, true, false, false}},
      {"linalg_lu", {false, true, true}},
      {"lu_unpack", {false, true, true}},
      {"_linalg_solve_ex", {true, false, false, false}},
      {"log_sigmoid_forward", {true, false}},
      {"_sparse_mm_reduce_impl", {true, false}},
      {"native_batch_norm", {true, false, false}},
      {"native_layer_norm", {true, false, false}},
      {"nll_loss_forward", {true, false}},
      {"multilabel_margin_loss_forward", {true, false}},
      {"rrelu_with_noise_functional", {true, false}},
      {"_batch_norm_impl_index", {true, false, false, false, false}},
      {"_native_batch_norm_legit", {true, false, false}},
      {"_native_batch_norm_legit_no_training", {true, false, false}},
      {"_native_batch_norm_legit_functional", {true, false, false, false, false}},
      {"_scaled_dot_product_flash_attention_for_cpu", {true, false}},
      {"_scaled_dot_product_efficient_attention", {true, false, false, false}},
      {"_scaled_dot_product_flash_attention",
       std::vector<bool>{true, false, false, false, false, false, false, false, false}},
      {"_thnn_fused_lstm_cell", {true, true, false}},
  };
  return known;
}

struct Refusal {
  const char* reason;
  const char* cure;
};

constexpr const char* kNotDense = "a tensor is made that is not dense, but sparse, nested, quantized or mkldnn";
constexpr const char* kForwardMode = "forward-mode gradients are used in a captured function";
constexpr const char* kBatched = "a batched tensor (vmap) is made or taken apart in a captured function";
constexpr const char* kLifted = "a constant is lifted: the operator gives its argument itself";
constexpr const char* kGivesItself = "the operator gives its argument itself, and its schema does not say so";
constexpr const char* kReadsBeyond = "LibTorch's kernel reads beyond its arguments at some sizes";
constexpr const char* kNames = "a name of a dimension is used in a captured function";
constexpr const char* kOutList = "an operator resizes tensors of a list (out = ...)";

// Operators whose results cannot be fakes.
bool gives_other_kinds(std::string_view name) {
  static const Names names = {"to_mkldnn",
                              "_to_mkldnn",
                              "_nested_tensor_from_tensor_list",
                              "_nested_from_padded",
                              "_nested_from_padded_tensor",
                              "_nested_tensor_from_mask",
                              "_nested_view_from_buffer",
                              "_nested_view_from_jagged",
                              "nested_to_padded_tensor",
                              "_make_per_tensor_quantized_tensor",
                              "_make_per_channel_quantized_tensor"};
  const auto begins = [name](std::string_view with) { return name.starts_with(with); };
  return names.contains(name) || begins("to_sparse") || begins("_to_sparse") || begins("sparse_coo_tensor") ||
         begins("sparse_compressed_tensor") || begins("sparse_csr_tensor") || begins("sparse_csc_tensor") ||
         begins("sparse_bsr_tensor") || begins("sparse_bsc_tensor") || begins("_sparse_coo_tensor") ||
         begins("_sparse_compressed_tensor") || begins("_sparse_csr_tensor") || begins("_sparse_csc_tensor") ||
         begins("_sparse_bsr_tensor") || begins("_sparse_bsc_tensor") || begins("quantize_per_") ||
         begins("quantized::") || begins("_quantized::") || begins("prepacked::") || begins("mkldnn_prepacked::") ||
         begins("mkldnn::_reorder_") || begins("_empty_affine_quantized") ||
         begins("_empty_per_channel_affine_quantized");
}

const std::unordered_map<std::string_view, Refusal>& refusals() {
  static const std::unordered_map<std::string_view, Refusal> known = {
      {"backward", {kGradientsInside, kCallOutside}},
      {"_backward", {kGradientsInside, kCallOutside}},
      {"set_data", {"set_data() replaces what a tensor is", "Use copy_() under a NoGradGuard."}},
      {"detach_", {"detach_() takes a tensor's history away in place", "Use detach()."}},
      {"set_", {"set_() replaces a tensor's storage", "Use views or copies."}},
      {"record_stream", {"record_stream() is called on a tensor that is being captured", kCallOutside}},
      {"_make_dual", {kForwardMode, kCallOutside}},
      {"_unpack_dual", {kForwardMode, kCallOutside}},
      {"_fw_primal", {kForwardMode, kCallOutside}},
      {"_add_batch_dim", {kBatched, kCallOutside}},
      {"_remove_batch_dim", {kBatched, kCallOutside}},
      {"data", {"the operator data() gives the memory of its argument without saying so", "Use detach()."}},
      {"_weight_int8pack_mm", {kReadsBeyond, kCallOutside}},
      {"slow_conv_transpose3d", {kReadsBeyond, kCallOutside}},
      {"_foobar", {kGivesItself, kCallOutside}},
      {"_test_optional_intlist", {kGivesItself, kCallOutside}},
      {"_test_optional_filled_intlist", {kGivesItself, kCallOutside}},
      {"_test_optional_floatlist", {kGivesItself, kCallOutside}},
      {"_test_parallel_materialize", {kGivesItself, kCallOutside}},
      {"lift", {kLifted, kCallOutside}},
      {"lift_fresh", {kLifted, kCallOutside}},
  };
  return known;
}

// True if the operator writes its results into a list of tensors (out = ...). It returns nothing, so no result shows
// the final sizes of these tensors.
bool writes_out_list(const c10::FunctionSchema& schema) {
  const auto& arguments = schema.arguments();
  return schema.returns().empty() && std::any_of(arguments.begin(), arguments.end(), [](const c10::Argument& argument) {
           return argument.is_out() && argument.type()->kind() == c10::TypeKind::ListType;
         });
}

// True if the operator changes its arguments and returns a tensor or none, which the capture cannot know.
bool may_return_none(const c10::FunctionSchema& schema) {
  return schema.is_mutable() && std::any_of(schema.returns().begin(), schema.returns().end(), [](const auto& result) {
           return result.type()->kind() == c10::TypeKind::OptionalType;
         });
}

// True for operators on named dimensions, which fakes do not have.
bool is_about_names(const c10::FunctionSchema& schema) {
  static const Names names = {"aten::rename",   "aten::rename_",  "aten::refine_names",
                              "aten::align_to", "aten::align_as", "aten::align_tensors"};
  const std::string& overload = schema.overload_name();
  return names.contains(schema.name()) || overload.find("imname") != std::string::npos ||
         overload.starts_with("names") || overload.find("_names") != std::string::npos;
}

bool holds_tensor(const c10::Type& type) {
  if (type.kind() == c10::TypeKind::TensorType) return true;
  const auto contained = type.containedTypes();
  return std::any_of(contained.begin(), contained.end(), [](const auto& inner) { return holds_tensor(*inner); });
}

Treatment::Kind kind_of(const Treatment& treatment, const c10::FunctionSchema& schema) {
  static const Names reads = {"item", "_local_scalar_dense", "is_nonzero", "allclose"};
  const std::string& name = treatment.name;
  if (name.starts_with("c10d::")) return Treatment::Kind::Communicate;
  if (reads.contains(name)) return Treatment::Kind::Read;
  if (name == "equal") return Treatment::Kind::Equal;
  if (refusals().contains(name) || gives_other_kinds(name)) return Treatment::Kind::Refuse;
  if (writes_out_list(schema) || may_return_none(schema) || is_about_names(schema)) return Treatment::Kind::Refuse;
  if (name == "empty" && schema.overload_name() == "memory_format") return Treatment::Kind::Empty;
  if (name == "rehearse::opaque") return Treatment::Kind::Opaque;
  if (name == "rehearse::storage_bytes") return Treatment::Kind::StorageBytes;
  if (name == "rehearse::version") return Treatment::Kind::Version;
  if (name == "ones_like") return Treatment::Kind::FirstGradient;
  const auto& returns = schema.returns();
  const bool gives_tensor =
      std::any_of(returns.begin(), returns.end(), [](const auto& result) { return holds_tensor(*result.type()); });
  return gives_tensor || returns.empty() || schema.is_mutable() ? Treatment::Kind::Record : Treatment::Kind::Evaluate;
}

Treatment make(const c10::OperatorHandle& op) {
  const c10::FunctionSchema& schema = op.schema();
  const std::string& qualified = schema.name();
  const bool is_aten = qualified.starts_with("aten::");
  Treatment made;
  made.name = is_aten ? qualified.substr(6) : qualified;
  made.target = graph::target_of(op);
  made.kind = kind_of(made, schema);
  made.is_mutable = schema.is_mutable();
  made.tells_aliases = std::any_of(schema.returns().begin(), schema.returns().end(),
                                   [](const c10::Argument& result) { return result.alias_info() != nullptr; });
  made.communicates = qualified.starts_with("_c10d_functional") || qualified.starts_with("c10d::");
  made.resizes_storage = qualified == "rehearse::resize_storage";
  made.changes_geometry = facts_of(op).changes_geometry;
  for (const c10::Argument& argument : schema.arguments()) {
    made.written.push_back(argument.alias_info() != nullptr && argument.alias_info()->isWrite());
  }
  made.differentiable = !without_derivative().contains(made.name);
  if (made.name == "view" && schema.overload_name() == "dtype") made.differentiable = false;
  for (const c10::Argument& argument : schema.arguments()) {
    made.viewed.push_back(made.differentiable && argument.alias_info() != nullptr && !argument.alias_info()->isWrite());
  }
  made.gives_history.assign(schema.arguments().size(), true);
  if (only_first_has_history(made.name)) std::fill(made.gives_history.begin() + 1, made.gives_history.end(), false);
  if (made.tells_aliases && !made.is_mutable) made.gives_history = made.viewed;
  made.sets_requires_grad = made.name == "requires_grad_";
  if (const auto found = differentiable_results().find(made.name); found != differentiable_results().end())
    made.differentiable_results = found->second;
  if (const auto found = compared_arguments().find(made.name); found != compared_arguments().end())
    made.gives_history.at(found->second) = false;
  if (gives_other_kinds(made.name)) {
    made.reason = kNotDense;
    made.cure = kCallOutside;
  }
  if (writes_out_list(schema)) {
    made.reason = kOutList;
    made.cure = "Call the operator that returns its results.";
  }
  if (may_return_none(schema)) {
    made.reason = "an operator returns a tensor or none";
    made.cure = kCallOutside;
  }
  if (is_about_names(schema)) {
    made.reason = kNames;
    made.cure = "Use the numbers of dimensions.";
  }
  if (const auto found = refusals().find(made.name); found != refusals().end()) {
    made.reason = found->second.reason;
    made.cure = found->second.cure;
  }
  return made;
}

}  // namespace

const Treatment& Treatments::of(const c10::OperatorHandle& op) {
  const c10::FunctionSchema* schema = &op.schema();
  const auto found = known_.find(schema);
  return found != known_.end() ? found->second : known_.emplace(schema, make(op)).first->second;
}

}  // namespace rehearse::capture
