// SPDX-License-Identifier: BSD-3-Clause
#include "differential/operators/sample.h"

#include <algorithm>
#include <map>

#include <ATen/CPUGeneratorImpl.h>

#include "differential/operators/out_dtypes.h"
#include "differential/operators/recipe.h"
#include "differential/operators/sample_rows.h"

namespace rehearse_test::differential {
namespace {

using torch::jit::Stack;

constexpr int kNumberChoices = Choice::kNumbers;

bool has(const std::string& name, std::initializer_list<const char*> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const char* part) { return name.find(part) != std::string::npos; });
}

// Recognises arguments that determine a result's dtype, layout or device, or the source of random numbers.
bool is_form(const std::string& name) {
  return has(name, {"dtype", "layout", "device", "pin_memory", "memory_format", "generator"});
}

// LibTorch has named tensors until 2.12.
template <class Tensor>
Tensor with_names(const Tensor& made) {
  if constexpr (requires { made.names(); }) {
    using Dimname = typename decltype(made.names())::value_type;
    using Symbol = decltype(std::declval<Dimname>().symbol());
    std::vector<Dimname> names;
    for (std::int64_t d = 0; d < made.dim(); ++d) {
      names.push_back(Dimname::fromSymbol(Symbol::dimname(std::string(1, static_cast<char>('A' + d)))));
    }
    return made.refine_names(names);
  } else {
    return made;
  }
}

class Maker {
 public:
  Maker(const c10::FunctionSchema& schema, const Choice& choice, std::int64_t size, bool needs_grad)
      : schema_(schema),
        named_(has(schema.overload_name(), {"name"})),
        choice_(choice),
        size_(choice.empty ? 0 : size),
        needs_grad_(needs_grad),
        generator_(at::detail::createCPUGenerator(7 + static_cast<std::uint64_t>(choice.draw))) {
    if (choice.recipe >= 0) words_ = words_of(recipes_of(schema).at(static_cast<std::size_t>(choice.recipe)));
  }

  bool add(const c10::Argument& argument) {
    const auto value = argument.is_out() ? out(argument) : choice_.recipe >= 0 ? by_recipe(argument) : make(argument);
    if (value) sample_.stack.push_back(*value);
    return value.has_value();
  }

  Sample take() { return std::move(sample_); }

 private:
  // Empty tensors, with the dtypes of the results if these are known.
  std::optional<c10::IValue> out(const c10::Argument& argument) {
    if (outs_++ == 0) out_dtypes_ = out_dtypes(schema_, sample_.stack);
    const bool is_list = argument.type()->kind() == c10::TypeKind::ListType;
    if (!out_dtypes_) return of_type(argument, *argument.real_type());
    c10::List<at::Tensor> list;
    for (const c10::ScalarType dtype : out_dtypes_->at(outs_ - 1)) list.push_back(keep(at::empty({0}, dtype), false));
    if (is_list) return list;
    return list.empty() ? std::nullopt : std::optional<c10::IValue>(list.get(0));
  }

  std::optional<c10::IValue> by_recipe(const c10::Argument& argument) {
    const std::size_t place = place_++;
    const std::string word = place < words_.size() ? words_[place] : "=";
    if (word == "=") return argument.default_value() ? argument.default_value() : std::optional<c10::IValue>();
    if (word == "-") return c10::IValue();
    const bool written = argument.alias_info() && argument.alias_info()->isWrite();
    const auto one = [&](const std::string& text) {
      return keep(in_precision(tensor_of_word(text, {size_, choice_.strided, generator_})), written);
    };
    if (is_tensor_word(word)) return one(word);
    c10::TypePtr type = argument.real_type();
    if (const auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
    if (word[0] != '{') return value_of_word(word, *type, size_);
    const bool may_be_none = type->castRaw<c10::ListType>()->getElementType()->kind() == c10::TypeKind::OptionalType;
    c10::List<at::Tensor> tensors;
    c10::List<std::optional<at::Tensor>> optionals;
    for (const std::string& item : items_of(word.substr(1, word.size() - 2), ';')) {
      if (may_be_none)
        optionals.push_back(item == "-" ? std::nullopt : std::optional(one(item)));
      else
        tensors.push_back(one(item));
    }
    return may_be_none ? c10::IValue(optionals) : c10::IValue(tensors);
  }

  std::optional<c10::IValue> make(const c10::Argument& argument) {
    const c10::TypePtr& type = argument.real_type();
    if (const auto optional = type->cast<c10::OptionalType>()) {
      if (!choice_.optionals || is_form(argument.name())) return argument.default_value().value_or(c10::IValue());
      return of_type(argument, *optional->getElementType());
    }
    const bool number = type->kind() == c10::TypeKind::IntType || type->kind() == c10::TypeKind::SymIntType;
    if (argument.default_value() && !(number && choice_.numbers == 1 && has(argument.name(), {"dim"}))) {
      return *argument.default_value();
    }
    return of_type(argument, *type);
  }

  std::optional<c10::IValue> of_type(const c10::Argument& argument, const c10::Type& type) {
    switch (type.kind()) {
      case c10::TypeKind::TensorType:
        return tensor(argument);
      case c10::TypeKind::IntType:
      case c10::TypeKind::SymIntType:
        return integer(argument.name());
      case c10::TypeKind::FloatType:
        return 0.5;
      case c10::TypeKind::BoolType:
        return choice_.numbers == 1;
      case c10::TypeKind::NumberType:
        return scalar();
      case c10::TypeKind::StringType:
        return text(argument.name());
      case c10::TypeKind::ListType:
        return list(argument, type);
      case c10::TypeKind::ScalarTypeType:
        return static_cast<std::int64_t>(at::kDouble);
      case c10::TypeKind::DeviceObjType:
        return c10::Device(at::kCPU);
      default:
        return std::nullopt;
    }
  }

  std::int64_t integer(const std::string& name) const {
    if (has(name, {"dim", "axis"}))
      return std::array<std::int64_t, kNumberChoices>{0, -1, 1, 0}[static_cast<std::size_t>(choice_.numbers)];
    if (has(name, {"mode"})) return choice_.numbers % 2;
    if (has(name, {"dtype"})) return static_cast<std::int64_t>(at::kDouble);
    return std::array<std::int64_t, kNumberChoices>{1, 2, 0, 3}[static_cast<std::size_t>(choice_.numbers)];
  }

  c10::IValue scalar() const {
    switch (choice_.numbers) {
      case 0:
        return 2;
      case 1:
        return 0.5;
      case 2:
        return 0;
      default:
        return 1;
    }
  }

  std::optional<c10::IValue> text(const std::string& name) const {
    if (named_ && has(name, {"dim"}))
      return c10::IValue(std::string(choice_.numbers == 1 ? "dimname::B" : "dimname::A"));
    static const std::map<std::string, const char*> known = {{"equation", "ij,jk->ik"},
                                                             {"rounding_mode", "floor"},
                                                             {"reduce", "mean"},
                                                             {"mode", "reduced"},
                                                             {"ord", "fro"},
                                                             {"indexing", "ij"},
                                                             {"interpolation", "linear"},
                                                             {"driver", "gelsd"},
                                                             {"UPLO", "L"},
                                                             {"p", "fro"},
                                                             {"padding", "valid"},
                                                             {"approximate", "tanh"},
                                                             {"norm", "ortho"},
                                                             {"pad_mode", "reflect"}};
    if (name == "reduce" && choice_.numbers > 0) return c10::IValue(std::string(choice_.numbers == 1 ? "add" : "sum"));
    const auto found = known.find(name);
    if (found == known.end()) return std::nullopt;
    return c10::IValue(std::string(found->second));
  }

  // The number of spatial dimensions, for kernel sizes and the like. It is the first tensor's number of dimensions
  // minus two, and at least one.
  std::size_t spatial() const {
    const std::int64_t dim = sample_.inputs.arguments.empty() ? 2 : sample_.inputs.arguments[0].dim();
    return static_cast<std::size_t>(std::max<std::int64_t>(dim - 2, 1));
  }

  std::optional<c10::IValue> list(const c10::Argument& argument, const c10::Type& type) {
    const c10::TypePtr element = type.castRaw<c10::ListType>()->getElementType();
    const std::string& name = argument.name();
    switch (element->kind()) {
      case c10::TypeKind::TensorType: {
        c10::List<at::Tensor> tensors;
        for (int i = 0; i < 2; ++i) tensors.push_back(tensor(argument).toTensor());
        return tensors;
      }
      case c10::TypeKind::OptionalType: {
        if (element->castRaw<c10::OptionalType>()->getElementType()->kind() != c10::TypeKind::TensorType)
          return std::nullopt;
        c10::List<std::optional<at::Tensor>> tensors;
        tensors.push_back(tensor(argument).toTensor());
        return tensors;
      }
      case c10::TypeKind::IntType:
      case c10::TypeKind::SymIntType:
        return integers(name, argument.N());
      case c10::TypeKind::StringType:
        return c10::List<std::string>({"dimname::A"});
      case c10::TypeKind::FloatType:
        return std::vector<double>(spatial(), 1.5);
      case c10::TypeKind::BoolType:
        return c10::List<bool>({true, true, true});
      case c10::TypeKind::NumberType: {
        c10::List<at::Scalar> numbers;
        for (int i = 0; i < 2; ++i) numbers.push_back(at::Scalar(2));
        return numbers;
      }
      default:
        return std::nullopt;
    }
  }

  c10::IValue integers(const std::string& name, std::optional<std::int32_t> length) const {
    const at::Tensor first = sample_.inputs.arguments.empty() ? at::Tensor() : sample_.inputs.arguments[0];
    const std::size_t n = spatial();
    if (has(name, {"size", "shape"}) && !has(name, {"kernel", "output"})) {
      if (!first.defined()) return Sizes{size_, 4};
      return choice_.numbers == 1 ? Sizes{first.numel()} : first.sizes().vec();
    }
    if (has(name, {"stride"}) && !has(name, {"kernel"}) && first.defined() && choice_.numbers == 2)
      return first.strides().vec();
    if (has(name, {"dims"}) && choice_.numbers == 1 && first.defined()) {
      Sizes all;
      for (std::int64_t d = first.dim(); d-- > 0;) all.push_back(d);
      return all;
    }
    if (has(name, {"dim"})) return choice_.numbers == 2 ? Sizes{0, 1} : Sizes{choice_.numbers == 1 ? -1 : 0};
    if (has(name, {"kernel", "output_size"})) return Sizes(n, 2);
    if (has(name, {"output_padding"})) return Sizes(n, 0);
    if (has(name, {"pad"}) && choice_.numbers > 0) return Sizes(2 * n, 1);
    if (has(name, {"padding"})) return Sizes(n, 0);
    if (has(name, {"stride", "dilation"})) return Sizes(n, 1);
    if (has(name, {"split"})) return Sizes{1, first.defined() && first.dim() > 0 ? first.size(0) - 1 : 1};
    return Sizes(length ? static_cast<std::size_t>(*length) : n, 1);
  }

  // Converts a strided tensor to the choice's kind. If the operator takes names, names the dimensions A, B, ...
  at::Tensor in_form(at::Tensor made) const {
    if (choice_.kind == Choice::kSparse) return made.to_sparse();
    if (choice_.kind == Choice::kQuantized) return at::quantize_per_tensor(made.to(at::kFloat), 0.125, 4, at::kQUInt8);
    if (choice_.kind == Choice::kCompressed) return made.to_sparse_csr();
    return named_ ? with_names(made) : made;
  }

  c10::IValue tensor(const c10::Argument& argument) {
    const std::size_t place = place_++;
    const auto& shapes = sample_shapes()[static_cast<std::size_t>(choice_.shapes)];
    const auto& dtypes = sample_dtypes()[static_cast<std::size_t>(choice_.dtypes)];
    Sizes sizes = shapes[std::min(place, shapes.size() - 1)];
    for (std::int64_t& each : sizes) each = each == kN ? size_ : each == kTwoMore ? size_ + 2 : each;
    c10::ScalarType dtype = dtypes[std::min(place, dtypes.size() - 1)];
    const bool written = argument.alias_info() && argument.alias_info()->isWrite();
    if (argument.is_out()) {
      const std::string& name = argument.name();
      if (has(name, {"pivots", "info"})) dtype = at::kInt;
      if (has(name, {"indices", "rank"})) dtype = at::kLong;
      return keep(at::empty({0}, dtype), false);
    }
    if (choice_.dtypes == 0 && has(argument.name(), {"index", "indices", "offsets", "target"})) dtype = at::kLong;
    if (has(argument.name(), {"pivots"})) return keep(at::arange(1, size_ + 1, at::kInt), false);
    if (has(argument.name(), {"offsets"})) return keep(at::zeros(sizes, at::kLong), false);
    if (choice_.dtypes == 0 && has(argument.name(), {"mask", "condition"})) dtype = at::kBool;
    return keep(in_precision(in_form(values(sizes, dtype))), written);
  }

  at::Tensor values(Sizes sizes, c10::ScalarType dtype) {
    const bool flip = choice_.strided && sizes.size() > 1;
    if (flip) std::swap(sizes.front(), sizes.back());
    if (choice_.strided && sizes.size() == 1) sizes[0] *= 2;
    at::Tensor drawn = at::rand(sizes, generator_, at::kDouble);
    if (dtype == at::kBool) {
      drawn = drawn > 0.4;
    } else if (c10::isIntegralType(dtype, false)) {
      drawn = (drawn * 2).to(dtype);
    } else if (c10::isComplexType(dtype)) {
      drawn = at::complex(drawn, at::rand(sizes, generator_, at::kDouble)).to(dtype);
    } else {
      drawn = drawn.to(dtype);
    }
    if (flip) return drawn.transpose(0, -1);
    return choice_.strided && sizes.size() == 1 ? drawn.slice(0, 0, sizes[0], 2) : drawn;
  }

  // Keeps the strides.
  at::Tensor in_precision(const at::Tensor& made) const {
    const auto dtype = made.scalar_type();
    if (!choice_.single || (dtype != at::kDouble && dtype != at::kComplexDouble)) return made;
    return made.to(dtype == at::kDouble ? at::kFloat : at::kComplexFloat);
  }

  bool is_leaf() {
    const bool is_even = floating_++ % 2 == 0;
    return choice_.leaves == Choice::Leaves::All || is_even == (choice_.leaves == Choice::Leaves::Even);
  }

  at::Tensor keep(at::Tensor made, bool written) {
    const bool strided = !made.is_quantized() && made.layout() == at::kStrided;
    const bool floating =
        strided && (c10::isFloatingType(made.scalar_type()) || c10::isComplexType(made.scalar_type()));
    if (floating && is_leaf() && needs_grad_) {
      made.requires_grad_();
      sample_.inputs.leaves.push_back(made);
      if (written) made = made * 1;
    }
    sample_.inputs.arguments.push_back(made);
    return made;
  }

  const c10::FunctionSchema& schema_;
  bool named_;
  const Choice& choice_;
  std::int64_t size_;
  bool needs_grad_;
  at::Generator generator_;
  std::size_t place_ = 0, outs_ = 0, floating_ = 0;
  std::vector<std::string> words_;
  std::optional<std::vector<std::vector<c10::ScalarType>>> out_dtypes_;
  Sample sample_;
};

}  // namespace

std::optional<Sample> make_sample(const c10::FunctionSchema& schema, const Choice& choice, std::int64_t size,
                                  bool needs_grad) {
  if (choice.recipe < 0 && !fits(schema, choice.shapes)) return std::nullopt;
  Maker maker(schema, choice, size, needs_grad);
  for (const c10::Argument& argument : schema.arguments()) {
    if (!maker.add(argument)) return std::nullopt;
  }
  return maker.take();
}

Stack with_tensors(const Stack& stack, const Tensors& tensors) {
  Stack replaced;
  std::size_t next = 0;
  for (const c10::IValue& value : stack) {
    if (value.isTensor()) {
      replaced.emplace_back(tensors.at(next++));
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (std::size_t i = 0; i < value.toTensorList().size(); ++i) list.push_back(tensors.at(next++));
      replaced.emplace_back(list);
    } else if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const std::optional<at::Tensor>& item : value.toOptionalTensorList().vec()) {
        list.push_back(item ? std::optional(tensors.at(next++)) : std::nullopt);
      }
      replaced.emplace_back(list);
    } else {
      replaced.push_back(value);
    }
  }
  return replaced;
}

Tensors tensors_in(const Stack& stack) {
  Tensors tensors;
  for (const c10::IValue& value : stack) {
    if (value.isTensor()) tensors.push_back(value.toTensor());
    if (!value.isTensorList()) continue;
    for (const at::Tensor& tensor : value.toTensorVector()) tensors.push_back(tensor);
  }
  return tensors;
}

}  // namespace rehearse_test::differential
