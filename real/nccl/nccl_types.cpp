// SPDX-License-Identifier: BSD-3-Clause
#include "nccl_types.h"

#include <array>
#include <cstring>
#include <string>

#include <ATen/core/Tensor.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Exception.h>
#include <c10/util/Half.h>
#include <rehearse_internal/libtorch/version.h>

#include "nccl_error.h"

namespace rehearse::real {
namespace {

using Op = c10d::ReduceOp::RedOpType;

[[noreturn]] void refuse_bitwise(Op op) {
  const char* const name = op == Op::BAND ? "BAND" : op == Op::BOR ? "BOR" : "BXOR";
  TORCH_CHECK_VALUE(false, "Cannot use ReduceOp.", name, " with NCCL");
}

const c10d::NCCLPreMulSumSupplement* supplement_of(const comm::Operation& call) {
  return dynamic_cast<const c10d::NCCLPreMulSumSupplement*>(call.reduce_supplement.get());
}

std::array<std::byte, sizeof(double)> as_element(double factor, c10::ScalarType dtype) {
  std::array<std::byte, sizeof(double)> element{};
  const auto put = [&element](auto value) { std::memcpy(element.data(), &value, sizeof value); };
  switch (dtype) {
    case at::kHalf:
      put(c10::Half(static_cast<float>(factor)));
      break;
    case at::kBFloat16:
      put(c10::BFloat16(static_cast<float>(factor)));
      break;
    case at::kFloat:
      put(static_cast<float>(factor));
      break;
    default:
      put(factor);
  }
  return element;
}

}  // namespace

NcclElements elements_moved(c10::ScalarType dtype) {
  switch (dtype) {
    case at::kChar:
      return {ncclInt8};
    case at::kByte:
    case at::kBool:
    case at::kFloat8_e4m3fnuz:
    case at::kFloat8_e5m2fnuz:
      return {ncclUint8};
    case at::kFloat8_e4m3fn:
      return {ncclFloat8e4m3};
    case at::kFloat8_e5m2:
      return {ncclFloat8e5m2};
    case at::kInt:
      return {ncclInt32};
    case at::kLong:
      return {ncclInt64};
    case at::kHalf:
      return {ncclFloat16};
    case at::kBFloat16:
      return {ncclBfloat16};
    case at::kFloat:
      return {ncclFloat32};
    case at::kDouble:
      return {ncclFloat64};
    case at::kComplexFloat:
      return {ncclFloat32, 2};
    case at::kComplexDouble:
      return {ncclFloat64, 2};
    default:
      TORCH_CHECK_TYPE(false, "Input tensor data type is not supported for NCCL process group: ", dtype);
  }
}

void require_reducible(const comm::Operation& call, c10::ScalarType dtype) {
  const bool adds = call.reduce_op == Op::SUM || call.reduce_op == Op::AVG || call.reduce_op == Op::PREMUL_SUM;
  TORCH_CHECK(!c10::isComplexType(dtype) || adds, comm::name_of(call.type), " does not support ",
              comm::name_of(call.reduce_op), " on complex tensors");
  static_cast<void>(reduction_of(call, dtype));
}

ncclRedOp_t reduction_of(const comm::Operation& call, c10::ScalarType dtype) {
  switch (call.reduce_op) {
    case Op::SUM:
      return dtype == at::kBool ? ncclMax : ncclSum;
    case Op::AVG:
      TORCH_CHECK_TYPE(dtype != at::kBool, "Cannot use ReduceOp.AVG with boolean inputs");
      return ncclAvg;
    case Op::PRODUCT:
      return ncclProd;
    case Op::MIN:
      return ncclMin;
    case Op::MAX:
      return ncclMax;
    case Op::PREMUL_SUM:
      TORCH_CHECK_TYPE(dtype == at::kHalf || dtype == at::kFloat || dtype == at::kBFloat16 || dtype == at::kDouble,
                       "PreMulSum Data type must be half, float, bfloat16 or double");
      return ncclSum;
    case Op::BAND:
    case Op::BOR:
    case Op::BXOR:
      refuse_bitwise(call.reduce_op);
    default:
      TORCH_CHECK_VALUE(false, "Unhandled ReduceOp");
  }
}

void require_factor(const comm::Operation& call) {
  const auto* const supplement = supplement_of(call);
  TORCH_CHECK_VALUE(supplement != nullptr, "ReduceOp.PREMUL_SUM needs its factor; make it with ",
                    libtorch::kMakePreMulSum);
  const at::Tensor& factor = supplement->tensor_factor;
  if (!factor.defined()) return;
  TORCH_CHECK_VALUE(factor.numel() == 1, "ReduceOp.PREMUL_SUM's factor has ", factor.numel(), " elements; it has one");
  TORCH_CHECK_VALUE(factor.scalar_type() == call.inputs[0].scalar_type() && factor.device() == call.inputs[0].device(),
                    "ReduceOp.PREMUL_SUM's factor is of ", factor.scalar_type(), " on ", factor.device(),
                    "; it must be as the tensor is, of ", call.inputs[0].scalar_type(), " on ",
                    call.inputs[0].device());
}

Reduction::Reduction(NcclApi& nccl, const comm::Operation& call, c10::ScalarType dtype, ncclComm_t comm)
    : nccl_(nccl), comm_(comm), op_(reduction_of(call, dtype)) {
  if (call.reduce_op != c10d::ReduceOp::PREMUL_SUM) return;
  require_factor(call);
  const auto& supplement = *supplement_of(call);
  const auto type = elements_moved(dtype).type;
  auto element = as_element(supplement.double_factor, dtype);
  const bool on_device = supplement.tensor_factor.defined();
  void* const scalar = on_device ? supplement.tensor_factor.mutable_data_ptr() : element.data();
  const auto residence = on_device ? ncclScalarDevice : ncclScalarHostImmediate;
  require_success(nccl_, "ncclRedOpCreatePreMulSum",
                  nccl_.red_op_create_pre_mul_sum(&op_, scalar, type, residence, comm_), comm_);
  own_ = true;
}

Reduction::~Reduction() {
  if (own_) static_cast<void>(nccl_.red_op_destroy(op_, comm_));
}

}  // namespace rehearse::real
