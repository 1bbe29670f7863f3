// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse_internal/comm/communicators.h>

// Labels of calls (RankContext::label()) for those who know nothing of the rank's context. They find the world by
// exec::WorldLocal<Communicators>, and a rank that is a process by exec::WorldLocal<LabelKeeper>; where none is lent,
// and outside of ranks, there are no labels.
namespace rehearse::comm {

// The labels of a rank that is a process. Used on its main thread.
class LabelKeeper {
 public:
  virtual ~LabelKeeper() = default;

  // What the rank's next calls are labelled; null: nothing.
  virtual const std::string* label() const noexcept = 0;
  virtual void set_label(const std::string* label) noexcept = 0;

  // A label of that text which lives as long as this object.
  virtual const std::string* kept_label(const std::string& text) = 0;
};

// What the calling rank's next calls are labelled; null: nothing. Valid as long as the world.
const std::string* current_label() noexcept;

// The calling rank's calls have this label while it lives, and then the one before. Must not outlive the world.
class LabelScope {
 public:
  explicit LabelScope(const std::string& label);
  LabelScope(const LabelScope&) = delete;
  LabelScope& operator=(const LabelScope&) = delete;
  ~LabelScope();

 private:
  Communicators* const world_;  // null: there is none
  LabelKeeper* const process_;  // the same
  const std::string* const before_;
};

}  // namespace rehearse::comm
