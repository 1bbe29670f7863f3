// SPDX-License-Identifier: BSD-3-Clause
#include <optional>
#include <utility>

#include <ATen/Functions.h>
#include <c10/core/CPUAllocator.h>
#include <caffe2/serialize/inline_container.h>

#include <rehearse/graph/exported_program.h>

#include "graph/pt2/json_field.h"
#include "graph/pt2/schema_values.h"

namespace rehearse::graph {
namespace {

using caffe2::serialize::PyTorchStreamReader;

class Archive {
 public:
  explicit Archive(const std::string& path) : path_(path), reader_(path) {
    expect("archive_format", "pt2");
    expect("byteorder", "little");
  }

  ExportedProgram load_graph(const std::string& wanted) { return parse(model_called(wanted)); }

  ExportedProgram load(const std::string& wanted) {
    const std::string model = model_called(wanted);
    ExportedProgram program = parse(model);
    read_tensors(program, "data/weights/", "data/weights/" + model + "_weights_config.json");
    read_tensors(program, "data/constants/", "data/constants/" + model + "_constants_config.json");
    for (const auto& [name, attribute] : program.module->attributes()) {
      if (!attribute.tensor.defined()) throw ImportError("", path_, "has no data for '" + name + "'");
    }
    return program;
  }

 private:
  void expect(const std::string& record, const std::string& wanted) {
    const std::string found = text(record);
    if (found != wanted) throw ImportError("", record, "must be '" + wanted + "', and is '" + found + "'");
  }

  std::string text(const std::string& record) {
    const auto [data, size] = bytes(record);
    return {static_cast<const char*>(data.get()), size};
  }

  std::pair<at::DataPtr, std::size_t> bytes(const std::string& record) {
    if (!reader_.hasRecord(record)) throw ImportError("", path_, "has no record '" + record + "'");
    auto [data, size] = reader_.getRecord(record);
    return {std::move(data), size};
  }

  ExportedProgram parse(const std::string& model) { return parse_exported_program(text("models/" + model + ".json")); }

  // `wanted`: the model's name; empty for the only model.
  std::string model_called(const std::string& wanted) {
    if (!wanted.empty()) return wanted;
    std::vector<std::string> models;
    for (const std::string& record : reader_.getAllRecords()) {
      if (record.starts_with("models/") && record.ends_with(".json")) {
        models.push_back(record.substr(7, record.size() - 12));
      }
    }
    if (models.size() == 1) return models[0];
    std::string names;
    for (const std::string& name : models) names += (names.empty() ? "" : ", ") + name;
    throw ImportError("", path_, models.empty() ? "has no models" : "has several models, name one of them: " + names);
  }

  // Tensors with the same record share a storage.
  void read_tensors(ExportedProgram& program, const std::string& folder, const std::string& config_name) {
    if (!reader_.hasRecord(config_name)) return;
    const auto config = parse_json(text(config_name), config_name);
    std::map<std::string, at::Tensor> storages;
    for (const auto& [name, entry] : Field(*config, config_name)["config"].entries()) {
      const Attribute* declared = program.module->find_attribute(name);
      if (declared == nullptr) continue;  // state that the graph does not use
      if (entry["use_pickle"].boolean())
        entry["use_pickle"].fail("'" + name + "' is pickled; only raw tensors are read");
      const std::string record = folder + entry["path_name"].text();
      if (!storages.contains(record)) storages[record] = read_storage(record);
      Attribute attribute = *declared;
      attribute.tensor = view(storages[record], entry["tensor_meta"], attribute.meta);
      attribute.tensor.requires_grad_(attribute.meta.is_parameter && attribute.meta.requires_grad);
      program.module->set_attribute(name, std::move(attribute));
    }
  }

  at::Tensor read_storage(const std::string& record) {
    auto data = std::make_shared<std::pair<at::DataPtr, std::size_t>>(bytes(record));
    return at::from_blob(data->first.get(), {static_cast<std::int64_t>(data->second)}, [data](void*) {}, at::kByte);
  }

  static at::Tensor view(const at::Tensor& storage, const Field& field, const TensorMeta& declared) {
    const TensorMeta meta = read_tensor_meta(field);
    if (meta.dtype != declared.dtype || meta.sizes != declared.sizes) {
      field.fail("has another dtype or other sizes than the program says");
    }
    const std::optional<std::int64_t> needed = bytes_reached(meta);
    if (!needed) field.fail("a weight's sizes must be numbers");
    if (meta.layout != c10::Layout::Strided) field["layout"].fail("only strided tensors are read");
    if (*needed > storage.numel()) {
      field.fail("reaches over " + std::to_string(*needed) + " bytes; the record has " +
                 std::to_string(storage.numel()));
    }
    std::vector<std::int64_t> sizes;
    std::vector<std::int64_t> strides;
    for (const SymInt& size : meta.sizes) sizes.push_back(size.number());
    for (const SymInt& stride : meta.strides) strides.push_back(stride.number());
    at::Tensor tensor = at::empty({0}, at::TensorOptions(meta.dtype));
    tensor.set_(storage.storage(), meta.storage_offset.number(), sizes, strides);
    return tensor;
  }

  std::string path_;
  PyTorchStreamReader reader_;
};

// Converts c10::Error to ImportError. The archive reader throws c10::Error, and so does LibTorch for invalid tensors.
template <typename Load>
ExportedProgram with_import_errors(const std::string& path, Load load) {
  try {
    return load();
  } catch (const c10::Error& error) {
    throw ImportError("", path,
                      std::string("cannot be read as an archive of tensors: ") + error.what_without_backtrace());
  }
}

}  // namespace

ExportedProgram load_pt2(const std::string& path, const std::string& model) {
  return with_import_errors(path, [&] { return Archive(path).load(model); });
}

ExportedProgram load_pt2_graph(const std::string& path, const std::string& model) {
  return with_import_errors(path, [&] { return Archive(path).load_graph(model); });
}

}  // namespace rehearse::graph
