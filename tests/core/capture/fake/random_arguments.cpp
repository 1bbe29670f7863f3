// SPDX-License-Identifier: BSD-3-Clause
#include "random_arguments.h"

#include <sstream>
#include <stdexcept>
#include <utility>

namespace rehearse::capture::test {

std::vector<RandomArgument> ArgumentMaker::arguments(const c10::FunctionSchema& schema) {
  before_.clear();
  std::vector<RandomArgument> made;
  for (const c10::Argument& argument : schema.arguments()) {
    if (argument.alias_info() && argument.alias_info()->isWrite()) {
      const auto dtype = one_of({c10::kFloat, c10::kLong, c10::kBool, c10::kDouble});
      made.push_back({{{{0}, before_.empty() || draw(2) == 0 ? dtype : before_.front().dtype}}, false, {}});
    } else if (argument.default_value() && draw(3) == 0) {
      made.push_back({{}, false, *argument.default_value()});
    } else {
      made.push_back(of_type(*argument.real_type(), argument.name()));
    }
  }
  return made;
}

RandomTensor ArgumentMaker::tensor() {
  RandomTensor made;
  if (!before_.empty() && draw(3) != 0) {
    made = before_[draw(before_.size())];  // tensors of one call often fit together
  } else {
    made.sizes = one_of<std::vector<std::int64_t>>(
        {{3, 4}, {2, 3, 4}, {}, {4}, {0, 3}, {3, 0}, {1, 4}, {3, 1}, {2, 3, 4, 5}, {4, 4}, {1}});
    made.dtype = one_of({c10::kFloat, c10::kFloat, c10::kFloat, c10::kDouble, c10::kHalf, c10::kBFloat16, c10::kLong,
                         c10::kInt, c10::kByte, c10::kBool, c10::kComplexFloat, c10::kShort});
  }
  if (draw(6) == 0) made.dtype = one_of({c10::kFloat, c10::kLong, c10::kBool, c10::kDouble});
  made.transposed = made.sizes.size() >= 2 && draw(3) == 0;
  before_.push_back(made);
  return made;
}

RandomArgument ArgumentMaker::of_list(const c10::Type& element) {
  if (element.kind() == c10::TypeKind::TensorType) {
    RandomArgument list{{}, true, {}};
    for (std::size_t i = draw(4); i > 0; --i) list.tensors.push_back(tensor());
    return list;
  }
  if (element.kind() != c10::TypeKind::IntType && element.kind() != c10::TypeKind::SymIntType) {
    throw std::invalid_argument("a list of " + element.str());
  }
  const auto numbers = one_of<std::vector<std::int64_t>>(
      {{}, {0}, {1}, {-1}, {0, 1}, {-1, 0}, {0, 0}, {2, 3}, {3, 4}, {1, 0}, {0, 1, 2}, {2}, {4}, {12}, {-1, 4}});
  return {{}, false, c10::IValue(c10::List<std::int64_t>(numbers))};
}

RandomArgument ArgumentMaker::of_type(const c10::Type& type, const std::string& name) {
  const auto value = [](c10::IValue made) { return RandomArgument{{}, false, std::move(made)}; };
  switch (type.kind()) {
    case c10::TypeKind::TensorType:
      return {{tensor()}, false, {}};
    case c10::TypeKind::OptionalType:
      if (draw(2) == 0) return value({});
      return of_type(*type.expectRef<c10::OptionalType>().getElementType(), name);
    case c10::TypeKind::ListType:
      return of_list(*type.expectRef<c10::ListType>().getElementType());
    case c10::TypeKind::SymIntType:
    case c10::TypeKind::IntType:
      return value(name == "reduction" ? static_cast<std::int64_t>(draw(3)) : integer());
    case c10::TypeKind::BoolType:
      return value(draw(2) == 0);
    case c10::TypeKind::SymFloatType:
    case c10::TypeKind::FloatType:
      return value(one_of({0.5, 0.0, 1.0, 2.0}));
    case c10::TypeKind::NumberType:
      return value(draw(2) == 0 ? c10::IValue(one_of({0.5, 2.0, 0.0, 1.0})) : c10::IValue(integer()));
    case c10::TypeKind::ScalarTypeType:
      return value(static_cast<std::int64_t>(one_of({c10::kDouble, c10::kFloat, c10::kHalf, c10::kLong, c10::kBool})));
    case c10::TypeKind::MemoryFormatType:
      return value(static_cast<std::int64_t>(one_of({c10::MemoryFormat::Contiguous, c10::MemoryFormat::Preserve})));
    case c10::TypeKind::LayoutType:
    case c10::TypeKind::DeviceObjType:
    case c10::TypeKind::GeneratorType:
      return value({});
    default:
      throw std::invalid_argument(type.str());
  }
}

std::string text_of(const std::vector<RandomArgument>& arguments) {
  std::ostringstream text;
  for (const RandomArgument& argument : arguments) {
    for (const RandomTensor& tensor : argument.tensors) {
      text << tensor.dtype << tensor.sizes << (tensor.transposed ? " transposed" : "") << ", ";
    }
    if (argument.tensors.empty()) text << argument.value << ", ";
  }
  return text.str();
}

}  // namespace rehearse::capture::test
