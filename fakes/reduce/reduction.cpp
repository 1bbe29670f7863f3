// SPDX-License-Identifier: BSD-3-Clause
#include "reduce/reduction.h"

namespace rehearse::fakes {
namespace {

using Op = c10d::ReduceOp::RedOpType;

bool element_of(c10::ScalarType dtype, Element& element) {
  switch (dtype) {
    case c10::ScalarType::ComplexFloat:
    case c10::ScalarType::Float:
      element = Element::f32;
      return true;
    case c10::ScalarType::ComplexDouble:
    case c10::ScalarType::Double:
      element = Element::f64;
      return true;
    case c10::ScalarType::Half:
      element = Element::f16;
      return true;
    case c10::ScalarType::BFloat16:
      element = Element::bf16;
      return true;
    case c10::ScalarType::Float8_e4m3fn:
      element = Element::f8_e4m3fn;
      return true;
    case c10::ScalarType::Float8_e5m2:
      element = Element::f8_e5m2;
      return true;
    case c10::ScalarType::Char:
      element = Element::i8;
      return true;
    case c10::ScalarType::Bool:
    case c10::ScalarType::Byte:
      element = Element::u8;
      return true;
    case c10::ScalarType::Int:
      element = Element::i32;
      return true;
    case c10::ScalarType::Long:
      element = Element::i64;
      return true;
    default:
      return false;
  }
}

bool fold_of(Op op, Fold& fold) {
  switch (op) {
    case Op::SUM:
    case Op::AVG:
    case Op::PREMUL_SUM:
      fold = Fold::sum;
      return true;
    case Op::PRODUCT:
      fold = Fold::product;
      return true;
    case Op::MIN:
      fold = Fold::min;
      return true;
    case Op::MAX:
      fold = Fold::max;
      return true;
    case Op::BAND:
      fold = Fold::band;
      return true;
    case Op::BOR:
      fold = Fold::bor;
      return true;
    case Op::BXOR:
      fold = Fold::bxor;
      return true;
    default:
      return false;
  }
}

// The byte of a bool must stay 0 or 1.
Fold fold_of_bool(Fold fold) {
  switch (fold) {
    case Fold::sum:
    case Fold::max:
      return Fold::bor;
    case Fold::product:
    case Fold::min:
      return Fold::band;
    default:
      return fold;
  }
}

}  // namespace

bool find_reduction(c10::ScalarType dtype, Op op, Reduction& reduction) {
  Element element{};
  Fold fold{};
  if (!element_of(dtype, element) || !fold_of(op, fold)) return false;
  reduction.average = op == Op::AVG;
  reduction.scaled = op == Op::PREMUL_SUM;
  reduction.components = c10::isComplexType(dtype) ? 2 : 1;
  if (dtype == c10::ScalarType::Bool) {
    if (reduction.average || reduction.scaled) return false;
    fold = fold_of_bool(fold);
  }
  if (reduction.components == 2 && fold != Fold::sum) return false;
  if (!find_kernel(element, fold, reduction.kernel)) return false;
  const bool can_scale = reduction.kernel.load_scaled != nullptr && !c10::isFloat8Type(dtype);
  return !reduction.scaled || can_scale;
}

}  // namespace rehearse::fakes
