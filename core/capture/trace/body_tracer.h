// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <rehearse_internal/operators/capture_mode.h>

namespace rehearse::capture {

class Tracer;

// Puts marks (body_marks.h) around the nodes that are to become the body of one node. The code inside is traced like
// any other code; outline_bodies() later finds the values that come from outside.
class BodyTracer final : public operators::BodyRecorder {
 public:
  explicit BodyTracer(Tracer& tracer) : tracer_(tracer) {}

  std::vector<at::Tensor> record(const std::string& operation, const std::vector<at::Tensor>& inputs,
                                 const Code& code) override;

 private:
  std::optional<std::int64_t> begin(const std::string& operation, const std::vector<at::Tensor>& inputs);
  void end(const std::string& operation, std::int64_t number, std::size_t segment,
           const std::vector<at::Tensor>& results);

  Tracer& tracer_;
  std::int64_t begun_ = 0;
};

}  // namespace rehearse::capture
