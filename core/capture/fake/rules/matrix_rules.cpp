// SPDX-License-Identifier: BSD-3-Clause
// Rules for matrix products. The contracted dimensions must be equal: rules check numbers at once. For symbols, they
// add a guard or, if only the running program knows the size, a check to the graph.
#include "capture/fake/call/results.h"
#include "capture/fake/rules/rule_tables.h"

namespace rehearse::capture {
namespace {

void check_inner(const Call& call, const at::Tensor& left, const at::Tensor& right, std::int64_t right_dim) {
  TORCH_CHECK(left.scalar_type() == right.scalar_type(), call.facts.name, ": expected both to have one dtype, but got ",
              left.scalar_type(), " and ", right.scalar_type());
  TORCH_SYM_CHECK(left.sym_size(-1).sym_eq(right.sym_size(right_dim)), call.facts.name,
                  ": sizes do not fit: ", left.sym_sizes(), " and ", right.sym_sizes());
}

void check_dims(const Call& call, const at::Tensor& tensor, std::int64_t dims) {
  TORCH_CHECK(tensor.dim() == dims, call.facts.name, ": expected a tensor of ", dims, " dimensions, but got one of ",
              tensor.dim());
}

TensorSpec matrix_product(const Call& call, const at::Tensor& left, const at::Tensor& right) {
  check_dims(call, left, 2);
  check_dims(call, right, 2);
  check_inner(call, left, right, 0);
  return result(call, SymInts{left.sym_size(0), right.sym_size(1)}, left.scalar_type());
}

TensorSpec batched_product(const Call& call, const at::Tensor& left, const at::Tensor& right) {
  check_dims(call, left, 3);
  check_dims(call, right, 3);
  check_inner(call, left, right, 1);
  TORCH_SYM_CHECK(left.sym_size(0).sym_eq(right.sym_size(0)), call.facts.name, ": batches differ: ", left.sym_sizes(),
                  " and ", right.sym_sizes());
  return result(call, SymInts{left.sym_size(0), left.sym_size(1), right.sym_size(2)}, left.scalar_type());
}

// The addend must broadcast to the product.
Outputs with_addend(const at::Tensor& addend, TensorSpec product) {
  TORCH_CHECK(addend.dim() <= static_cast<std::int64_t>(product.sizes.size()), "expand: the added tensor has ",
              addend.dim(), " dimensions, the product ", product.sizes.size());
  const std::size_t offset = product.sizes.size() - static_cast<std::size_t>(addend.dim());
  for (std::size_t d = 0; d < static_cast<std::size_t>(addend.dim()); ++d) {
    const c10::SymInt& size = addend.sym_sizes()[d];
    if (is_known(size.sym_eq(1))) continue;
    TORCH_SYM_CHECK(size.sym_eq(product.sizes[d + offset]), "The added tensor's sizes ", addend.sym_sizes(),
                    " do not broadcast to ", c10::SymIntArrayRef(product.sizes));
  }
  return {std::move(product)};
}

Outputs mm(const Call& call) { return {matrix_product(call, call.tensor(0), call.tensor(1))}; }
Outputs bmm(const Call& call) { return {batched_product(call, call.tensor(0), call.tensor(1))}; }

Outputs addmm(const Call& call) {
  return with_addend(call.tensor(0), matrix_product(call, call.tensor(1), call.tensor(2)));
}

Outputs baddbmm(const Call& call) {
  return with_addend(call.tensor(0), batched_product(call, call.tensor(1), call.tensor(2)));
}

Outputs addbmm(const Call& call) {
  TensorSpec product = batched_product(call, call.tensor(1), call.tensor(2));
  return with_addend(call.tensor(0), result(call, SymInts{product.sizes[1], product.sizes[2]}, product.dtype));
}

TensorSpec vector_product(const Call& call, const at::Tensor& matrix, const at::Tensor& vector) {
  check_dims(call, matrix, 2);
  check_dims(call, vector, 1);
  check_inner(call, matrix, vector, 0);
  return result(call, SymInts{matrix.sym_size(0)}, matrix.scalar_type());
}

Outputs mv(const Call& call) { return {vector_product(call, call.tensor(0), call.tensor(1))}; }

Outputs addmv(const Call& call) {
  return with_addend(call.tensor(0), vector_product(call, call.tensor(1), call.tensor(2)));
}

Outputs dot(const Call& call) {
  check_dims(call, call.tensor(0), 1);
  check_dims(call, call.tensor(1), 1);
  check_inner(call, call.tensor(0), call.tensor(1), 0);
  return {result(call, SymInts{}, call.tensor(0).scalar_type())};
}

constexpr std::pair<const std::string_view, Rule> kMatrixRules[] = {
    {"aten::mm", mm},           {"aten::bmm", bmm},       {"aten::addmm", addmm},
    {"aten::baddbmm", baddbmm}, {"aten::addbmm", addbmm}, {"aten::mv", mv},
    {"aten::addmv", addmv},     {"aten::dot", dot},       {"aten::vdot", dot},
};

}  // namespace

RuleTable matrix_rules() { return kMatrixRules; }

}  // namespace rehearse::capture
