// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cctype>
#include <string>

#include <ATen/MemoryOverlap.h>
#include <ATen/SparseTensorImpl.h>
#include <c10/util/Exception.h>

#include <rehearse_internal/fakes/fake_fabric.h>
#include <rehearse_internal/libtorch/version.h>

#include "reduce/reduction.h"

namespace rehearse::fakes {
namespace {

using comm::Operation;
using Op = c10d::ReduceOp::RedOpType;

void check_tensor(const Operation& call, const at::Tensor& tensor) {
  TORCH_CHECK(tensor.defined(), comm::name_of(call.type), ": a tensor is undefined");
  TORCH_CHECK(tensor.layout() == c10::kStrided, comm::name_of(call.type), ": unsupported layout; it does not support ",
              tensor.layout(), " tensors");
  TORCH_CHECK(tensor.device().is_cpu(), comm::name_of(call.type), ": unsupported device type ", tensor.device().type(),
              "; it does not support tensors that are not on the CPU");
  // The memory of a conjugate or negative view does not hold the tensor's values.
  TORCH_CHECK(!tensor.is_conj() && !tensor.is_neg(), comm::name_of(call.type),
              ": the tensor is an unresolved conjugate or negative view; use resolve_conj() or resolve_neg()");
}

// The spelling in c10d's own messages.
std::string name_in_messages(Op op) {
  std::string name(comm::name_of(op));
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::toupper(c); });
  return name;
}

void check_sparse(const Operation& call, const at::Tensor& tensor) {
  TORCH_CHECK(tensor.defined() && tensor.is_sparse(), comm::name_of(call.type), ": the tensor must be sparse COO");
  TORCH_CHECK(tensor.device().is_cpu(), comm::name_of(call.type), ": unsupported device type ", tensor.device().type(),
              "; it does not support tensors that are not on the CPU");
  const auto& sparse = static_cast<const at::SparseTensorImpl&>(*tensor.unsafeGetTensorImpl());
  TORCH_CHECK(!tensor.is_conj() && !sparse.values().is_conj() && !sparse.values().is_neg(), comm::name_of(call.type),
              ": the tensor is an unresolved conjugate or negative view; use resolve_conj() or resolve_neg()");
}

void validate_sparse(const Operation& call) {
  TORCH_CHECK(!call.inputs.empty(), comm::name_of(call.type), ": no tensor");
  check_sparse(call, call.inputs[0]);
  TORCH_CHECK(call.reduce_op == Op::SUM,
              "unsupported reduction operation (allreduce of sparse tensors only works with ReduceOp.SUM)");
  Reduction sum;
  TORCH_CHECK(find_reduction(call.inputs[0].scalar_type(), Op::SUM, sum), "Invalid scalar type");
}

[[noreturn]] void refuse(const Operation& call, c10::ScalarType dtype) {
  const auto op = name_in_messages(call.reduce_op);
  const bool bitwise = call.reduce_op == Op::BAND || call.reduce_op == Op::BOR || call.reduce_op == Op::BXOR;
  Reduction sum;
  TORCH_CHECK(find_reduction(dtype, Op::SUM, sum), "Invalid scalar type");
  TORCH_CHECK(!bitwise || c10::isIntegralType(dtype, true), "Cannot use ReduceOp.", op, " with non-integral dtype");
  TORCH_CHECK(!c10::isComplexType(dtype), comm::name_of(call.type), " does not support ", op, " on complex tensors");
  TORCH_CHECK_TYPE(call.reduce_op != Op::AVG, "Cannot use ReduceOp.AVG with boolean inputs");
  TORCH_CHECK_TYPE(call.reduce_op != Op::PREMUL_SUM, "PreMulSum Data type must be half, float, bfloat16 or double");
  TORCH_CHECK_VALUE(false, "Unhandled ReduceOp");
}

void check_factor(const Operation& call) {
  const auto* const supplement = dynamic_cast<const c10d::NCCLPreMulSumSupplement*>(call.reduce_supplement.get());
  TORCH_CHECK_VALUE(supplement != nullptr, "ReduceOp.PREMUL_SUM needs its factor; make it with ",
                    libtorch::kMakePreMulSum);
  const at::Tensor& factor = supplement->tensor_factor;
  if (!factor.defined()) return;
  TORCH_CHECK(factor.device().is_cpu() && factor.layout() == c10::kStrided && factor.numel() == 1,
              "ReduceOp.PREMUL_SUM's factor must be a dense CPU tensor of one element");
  const auto dtype = factor.scalar_type();
  TORCH_CHECK_TYPE(dtype == at::kFloat || dtype == at::kDouble || dtype == at::kHalf || dtype == at::kBFloat16,
                   "PreMulSum Data type must be half, float, bfloat16 or double");
}

void validate(const Operation& call) {
  for (const Operation& part : call.parts) validate(part);
  if (!call.parts.empty()) return;
  if (call.type == c10d::OpType::_ALLREDUCE_SPARSE) return validate_sparse(call);
  const auto& row = comm::op_row(call.type);
  TORCH_CHECK(row.type != c10d::OpType::UNKNOWN && row.kind != comm::OpKind::parts,
              "unsupported operation: the fabric does not support ", comm::name_of(call.type));
  for (const at::Tensor& tensor : call.inputs) check_tensor(call, tensor);
  for (const at::Tensor& tensor : call.outputs) {
    check_tensor(call, tensor);
    at::assert_no_internal_overlap(tensor);
  }
  if (row.kind != comm::OpKind::reduces) return;
  TORCH_CHECK(!call.inputs.empty(), comm::name_of(call.type), ": no tensor");
  Reduction reduction;
  const auto dtype = call.inputs[0].scalar_type();
  if (!find_reduction(dtype, call.reduce_op, reduction)) refuse(call, dtype);
  if (reduction.scaled) check_factor(call);
}

}  // namespace

void FakeFabric::prepare(Operation& call, const comm::GroupIdentity&, int) { validate(call); }

}  // namespace rehearse::fakes
