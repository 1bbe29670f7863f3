// SPDX-License-Identifier: BSD-3-Clause
#include "differential/operators/recipe.h"

#include <cctype>
#include <map>
#include <sstream>

#include <ATen/ATen.h>

namespace rehearse_test::differential {
namespace {

const std::map<char, c10::ScalarType> kDtypeLetters = {
    {'d', at::kDouble},        {'f', at::kFloat}, {'l', at::kLong}, {'i', at::kInt},  {'b', at::kBool},
    {'c', at::kComplexDouble}, {'u', at::kByte},  {'s', at::kChar}, {'h', at::kHalf}, {'g', at::kBFloat16}};

std::int64_t number_of(const std::string& term, std::int64_t size) {
  if (term == "n") return size;
  if (term == "m") return size + 2;
  if (term == "p") return size + 1;
  if (term == "w") return 2 * size;
  return std::stoll(term);
}

std::vector<std::int64_t> numbers_of(const std::string& list, std::int64_t size) {
  std::vector<std::int64_t> numbers;
  for (const std::string& term : items_of(list, ',')) numbers.push_back(number_of(term, size));
  return numbers;
}

at::Tensor drawn(const std::vector<std::int64_t>& sizes, c10::ScalarType dtype, at::Generator& generator) {
  const at::Tensor values = at::rand(sizes, generator, at::kDouble);
  if (dtype == at::kBool) return values > 0.4;
  if (c10::isIntegralType(dtype, false)) return (values * 2).to(dtype);
  if (c10::isComplexType(dtype)) return at::complex(values, at::rand(sizes, generator, at::kDouble)).to(dtype);
  return values.to(dtype);
}

at::Tensor filled(char fill, const std::vector<std::int64_t>& sizes, c10::ScalarType dtype, at::Generator generator) {
  switch (fill) {
    case '0':
      return at::zeros(sizes, dtype);
    case '1':
      return at::ones(sizes, dtype);
    case 'a':
      return at::arange(c10::multiply_integers(sizes), at::kDouble).view(sizes).to(dtype);
    case 'e':
      return at::eye(sizes.back(), at::kDouble).expand(sizes).clone().to(dtype);
    case 'p': {
      const at::Tensor root = at::rand(sizes, generator, at::kDouble);
      return (root.matmul(root.mT()) + at::eye(sizes.back(), at::kDouble)).to(dtype);
    }
    case 's':
      return std::get<0>(drawn(sizes, dtype, generator).sort());
    default:
      return drawn(sizes, dtype, generator);
  }
}

// Returns a tensor with the same values, with gaps in memory between them. Returns `made` itself if it has no
// dimensions.
at::Tensor with_gaps(const at::Tensor& made) {
  if (made.dim() == 0) return made;
  at::Tensor wide = at::zeros_like(made).repeat_interleave(2, -1);
  at::Tensor every_second = wide.slice(-1, 0, wide.size(-1), 2);
  return every_second.copy_(made);
}

}  // namespace

std::vector<std::string> items_of(const std::string& list, char separator) {
  std::vector<std::string> items;
  std::istringstream in(list);
  for (std::string item; std::getline(in, item, separator);) items.push_back(item);
  return items;
}

std::vector<std::string> words_of(const Recipe& recipe) {
  std::vector<std::string> words;
  std::istringstream in(recipe);
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

bool is_tensor_word(const std::string& word) {
  return kDtypeLetters.contains(word[0]) && (word.find('[') == 1 || word.find('[') == 2);
}

at::Tensor tensor_of_word(const std::string& word, const RecipeTerms& terms) {
  const std::size_t bracket = word.find('[');
  const auto sizes = numbers_of(word.substr(bracket + 1, word.size() - bracket - 2), terms.size);
  const at::Tensor made = filled(bracket == 2 ? word[1] : ' ', sizes, kDtypeLetters.at(word[0]), terms.generator);
  return terms.strided ? with_gaps(made) : made;
}

c10::IValue value_of_word(const std::string& word, const c10::Type& type, std::int64_t size) {
  const std::string inside = word.size() > 1 ? word.substr(1, word.size() - 2) : "";
  switch (word[0]) {
    case 'T':
    case 'F':
      return word == "T";
    case '(':
      return numbers_of(inside, size);
    case '\'':
      return inside;
    case '@':
      return std::int64_t{std::stoll(word.substr(1))};
    case '<': {
      std::vector<double> numbers;
      for (const std::string& item : items_of(inside, ',')) numbers.push_back(std::stod(item));
      return numbers;
    }
    case '?': {
      c10::List<bool> flags;
      for (const char flag : word.substr(1)) flags.push_back(flag == 'T');
      return flags;
    }
    default:
      if (word.find('.') != std::string::npos || type.kind() == c10::TypeKind::FloatType) return std::stod(word);
      return number_of(word, size);
  }
}

}  // namespace rehearse_test::differential
