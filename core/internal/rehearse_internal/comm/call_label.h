// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse_internal/comm/communicators.h>

// Labels of calls (RankContext::label()) for code without the rank's context. These functions find the labels by
// exec::WorldLocal<Communicators> or, if each rank is a process, by LabelKeeper::Lent. Without either, and outside of
// ranks, calls have no labels.
namespace rehearse::comm {

// The labels of a rank that is a process. Each function is for the calling thread, and thread safe.
class LabelKeeper {
 public:
  // While it lives, the whole process uses this keeper.
  class Lent {
   public:
    explicit Lent(LabelKeeper& keeper) noexcept;
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;
    ~Lent();
  };

  virtual ~LabelKeeper() = default;

  // The label of the thread's next calls; null: none.
  virtual const std::string* label() const noexcept = 0;
  virtual void set_label(const std::string* label) noexcept = 0;

  // A label with that text, which lives as long as this object.
  virtual const std::string* kept_label(const std::string& text) = 0;
};

// The label of the calling rank's next calls; null: none. Valid as long as the world.
const std::string* current_label() noexcept;

// Sets the label of the calling rank's calls while it lives, then restores the previous one. Must not outlive the
// world.
class LabelScope {
 public:
  explicit LabelScope(const std::string& label);
  LabelScope(const LabelScope&) = delete;
  LabelScope& operator=(const LabelScope&) = delete;
  ~LabelScope();

 private:
  Communicators* const world_;  // null: none
  LabelKeeper* const process_;  // null: none
  const std::string* const before_;
};

}  // namespace rehearse::comm
