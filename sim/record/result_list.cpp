// SPDX-License-Identifier: BSD-3-Clause
#include "record/result_list.h"

#include <cmath>
#include <limits>
#include <map>
#include <ostream>
#include <utility>

#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/view_as_real.h>
#include <c10/core/ScalarType.h>
#include <fmt/format.h>

#include <rehearse_internal/hash/fnv1a.h>

#include "report/writers/json_reader.h"

namespace rehearse::sim {
namespace {

constexpr int kResultsVersion = 1;
constexpr std::string_view kResults = "list of results";
constexpr std::string_view kDigits = "0123456789abcdef";

void add_figures_of(const at::Tensor& value, ListedResult& result) {
  if (value.numel() == 0) return;
  const auto real = value.is_complex() ? at::view_as_real(value) : value;
  const auto numbers = real.to(at::kDouble).reshape({-1});
  result.least = numbers.min().item<double>();
  result.most = numbers.max().item<double>();
  result.norm = at::linalg_vector_norm(numbers, 2).item<double>();
}

std::string hexadecimal_of(std::string_view bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string bytes_of(std::string_view hexadecimal) {
  std::string bytes;
  bytes.reserve(hexadecimal.size() / 2);
  for (std::size_t i = 0; i + 1 < hexadecimal.size(); i += 2) {
    const auto high = kDigits.find(hexadecimal[i]), low = kDigits.find(hexadecimal[i + 1]);
    if (high == kDigits.npos || low == kDigits.npos) break;
    bytes += static_cast<char>(high * 16 + low);
  }
  if (2 * bytes.size() != hexadecimal.size())
    throw ReportFormatError(fmt::format("is no {} of rehearse: bytes that are not hexadecimal", kResults));
  return bytes;
}

// JSON has neither infinities nor NaN, so those become texts.
Json figure(double value) { return std::isfinite(value) ? Json(value) : Json(fmt::format("{}", value)); }

double figure_of(const JsonReader& reader, const char* key) {
  if (!reader.is_text(key)) return reader.get<double>(key);
  const auto text = reader.get<std::string>(key);
  const auto infinity = std::numeric_limits<double>::infinity();
  return text == "inf" ? infinity : text == "-inf" ? -infinity : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

std::int64_t ListedResult::elements() const noexcept {
  std::int64_t count = 1;
  for (const auto size : sizes) count *= size;
  return count;
}

std::vector<ListedResult> listed_results(const std::vector<RankResult>& results, const ResultLimits& limits) {
  std::vector<ListedResult> listed;
  std::map<std::pair<int, std::string>, std::uint64_t> known;
  std::size_t bytes_kept = 0;
  for (const auto& [rank, name, kept] : results) {
    // A conjugate view has the bytes of its base.
    const auto value = (kept.is_sparse() ? kept.to_dense() : kept).resolve_conj().resolve_neg().contiguous();
    const std::string dtype(c10::getDtypeNames(value.scalar_type()).first);
    ListedResult result{rank, name, known[{rank, name}]++, dtype, value.sizes().vec()};
    const std::string_view bytes(static_cast<const char*>(value.const_data_ptr()), value.nbytes());
    result.hash = fnv1a(bytes);
    add_figures_of(value, result);
    if (bytes.size() <= limits.tensor_bytes && bytes_kept + bytes.size() <= limits.file_bytes) {
      result.bytes = bytes;
      bytes_kept += bytes.size();
    }
    listed.push_back(std::move(result));
  }
  return listed;
}

void write_results(std::ostream& out, const std::vector<ListedResult>& results) {
  out << "{\"rehearse_results\": " << kResultsVersion << ", \"results\": [";
  const char* before = "\n";
  for (const auto& result : results) {
    Json json{
        {"rank", result.rank},           {"name", result.name},         {"index", result.index},
        {"dtype", result.dtype},         {"sizes", result.sizes},       {"hash", fmt::format("{:#x}", result.hash)},
        {"least", figure(result.least)}, {"most", figure(result.most)}, {"norm", figure(result.norm)}};
    if (result.is_whole()) json["bytes"] = hexadecimal_of(result.bytes);
    out << before << json_text(std::move(json));
    before = ",\n";
  }
  out << "\n]}\n";
}

std::vector<ListedResult> results_from_json(std::string_view text) {
  const Json json = parsed_json(text, kResults);
  const JsonReader reader(json, kResults);
  if (reader.get<int>("rehearse_results") != kResultsVersion) {
    throw ReportFormatError(fmt::format("is a list of results of format {}; this rehearse reads format {}",
                                        reader.get<int>("rehearse_results"), kResultsVersion));
  }
  return reader.get_list("results", [](const JsonReader& each) {
    ListedResult result{each.get<int>("rank"), each.get<std::string>("name"), each.get<std::uint64_t>("index"),
                        each.get<std::string>("dtype"), each.get<std::vector<std::int64_t>>("sizes")};
    result.hash = each.get_hexadecimal("hash");
    result.bytes = bytes_of(each.get_if_there<std::string>("bytes"));
    result.least = figure_of(each, "least");
    result.most = figure_of(each, "most");
    result.norm = figure_of(each, "norm");
    return result;
  });
}

}  // namespace rehearse::sim
