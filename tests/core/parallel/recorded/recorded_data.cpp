// SPDX-License-Identifier: BSD-3-Clause
#include "core/parallel/recorded/recorded_data.h"

#include <charconv>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace rehearse_test {
namespace {

const nlohmann::json& recorded_json() {
  static const auto data = [] {
    std::ifstream file(REHEARSE_DDP_DATA);
    if (!file) throw std::runtime_error("cannot read " REHEARSE_DDP_DATA);
    return nlohmann::json::parse(file);
  }();
  return data;
}

std::string text_of(const nlohmann::json& value) {
  if (value.is_string()) return value;
  if (value.is_boolean()) return value.get<bool>() ? "1" : "0";
  return value.dump();
}

}  // namespace

std::vector<RecordedState> recorded_states(const std::string& name) {
  std::vector<RecordedState> states;
  for (const auto& record : recorded_json().at("records")) {
    if (record.at("case") != name) continue;
    states.push_back({record.at("ranks"), record.at("rank"), record.at("step"), record.at("tensors")});
  }
  if (states.empty()) throw std::runtime_error("not recorded: " + name);
  return states;
}

std::map<std::string, std::string> recorded_logging_data(const std::string& name, int ranks, int rank) {
  for (const auto& record : recorded_json().at("logging")) {
    if (record.at("case") != name || record.at("ranks") != ranks || record.at("rank") != rank) continue;
    std::map<std::string, std::string> data;
    for (const auto& [key, value] : record.at("data").items()) data.emplace(key, text_of(value));
    return data;
  }
  throw std::runtime_error("logging data not recorded: " + name);
}

std::string recorded_error(const std::string& name, int rank) {
  for (const auto& record : recorded_json().at("errors")) {
    if (record.at("case") == name && record.at("rank") == rank) return record.at("text");
  }
  throw std::runtime_error("error not recorded: " + name);
}

std::string bits_of(const at::Tensor& tensor) {
  const auto flat = tensor.detach().contiguous();
  const auto size = flat.element_size();
  std::string text;
  for (std::int64_t i = 0; i < flat.numel(); ++i) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, static_cast<const char*>(flat.const_data_ptr()) + i * size, size);
    text += fmt::format("{:0{}x}", bits, 2 * size);
  }
  return text;
}

at::Tensor tensor_of(const std::string& bits, at::ScalarType dtype) {
  const auto size = c10::elementSize(dtype);
  const auto count = bits.size() / (2 * size);
  auto tensor = at::empty({static_cast<std::int64_t>(count)}, dtype);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t element = 0;
    const char* const digits = bits.data() + 2 * size * i;
    std::from_chars(digits, digits + 2 * size, element, 16);
    std::memcpy(static_cast<char*>(tensor.mutable_data_ptr()) + i * size, &element, size);
  }
  return tensor;
}

}  // namespace rehearse_test
