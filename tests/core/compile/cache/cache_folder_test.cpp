// SPDX-License-Identifier: BSD-3-Clause
// The folder of compiled graphs: a reader gets exactly the text that the same program wrote, or nothing.
#include "compile/cache/cache_folder.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "own_process.h"

namespace rehearse::compiler {
namespace {

namespace fs = std::filesystem;
using test::text_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint64_t kMiB = 1 << 20;

void put(const fs::path& file, const std::string& content) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << content;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& each : fs::directory_iterator(folder)) names.push_back(each.path().filename().string());
  return names;
}

class Folder : public ::testing::Test {
 protected:
  test::TemporaryFolder temporary_;
  fs::path path_ = temporary_.path() / "graphs";
  CacheFolder folder_{path_, kMiB, "program 1"};
};

TEST_F(Folder, GivesWhatWasWrittenUnderTheKey) {
  const std::string odd("a\0b\n7\n", 6);
  EXPECT_EQ(folder_.read("key").why_not, "there is no " + folder_.file_of("key").string());
  EXPECT_FALSE(folder_.read("key").is_unexpected);
  EXPECT_EQ(folder_.write("key", odd), "");
  EXPECT_EQ(folder_.write("other", ""), "");
  EXPECT_EQ(folder_.read("key").stored, odd);
  EXPECT_EQ(folder_.read("other").stored, "");
  EXPECT_EQ(folder_.write("key", "later"), "");
  EXPECT_EQ(folder_.read("key").stored, "later");
  EXPECT_EQ(names_in(path_).size(), 2U);
}

TEST_F(Folder, DamagedFilesAreNotRead) {
  ASSERT_EQ(folder_.write("key", "what was stored"), "");
  const fs::path file = folder_.file_of("key");
  const std::string whole = text_of(file);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    put(file, damaged);
    const auto found = folder_.read("key");
    EXPECT_FALSE(found.stored) << "byte " << i;
    EXPECT_TRUE(found.is_unexpected) << "byte " << i;
    EXPECT_THAT(found.why_not, HasSubstr(file.string())) << "byte " << i;
    put(file, whole.substr(0, i));
    EXPECT_TRUE(folder_.read("key").is_unexpected) << "length " << i;
  }
  put(file, whole + "x");
  EXPECT_EQ(folder_.read("key").why_not, file.string() + " is damaged: its checksum is another");
  put(file, whole.substr(0, whole.size() - 20));
  EXPECT_EQ(folder_.read("key").why_not, file.string() + " is damaged: it ends too early");
  EXPECT_EQ(folder_.write("key", "anew"), "");
  EXPECT_EQ(folder_.read("key").stored, "anew");
}

TEST_F(Folder, OtherProgramsKeysAndFormatsAreNotRead) {
  const CacheFolder other(path_, kMiB, "program 2");
  ASSERT_EQ(other.write("key", "other"), "");
  ASSERT_EQ(folder_.write("key 2", "two"), "");
  EXPECT_FALSE(folder_.read("key").stored);
  EXPECT_FALSE(folder_.read("key").is_unexpected) << "each program has files of its own";
  const fs::path file = folder_.file_of("key");
  fs::copy_file(other.file_of("key"), file);
  EXPECT_EQ(folder_.read("key").why_not, file.string() + " is of program 2; this is program 1");
  fs::copy_file(folder_.file_of("key 2"), file, fs::copy_options::overwrite_existing);
  EXPECT_EQ(folder_.read("key").why_not, file.string() + " is of another graph, whose key has the same hash");
  put(file, "a compiled graph of Rehearse, format 2\n");
  EXPECT_EQ(folder_.read("key").why_not, file.string() + " is of another format than this version of Rehearse writes");
  fs::remove(file);
  fs::create_directory(file);
  EXPECT_EQ(folder_.read("key").why_not, file.string() + " cannot be read: it must be a file that this user may read");
}

TEST_F(Folder, WhatCannotBeWrittenIsReported) {
  put(path_, "a file");
  EXPECT_THAT(folder_.write("key", "text"), HasSubstr("the folder " + path_.string() + " cannot be made: "));
  fs::remove(path_);
  fs::create_directories(folder_.file_of("key") / "in the way");
  EXPECT_EQ(folder_.write("key", "text"), folder_.file_of("key").string() + " cannot be written: Is a directory");
  EXPECT_EQ(names_in(path_).size(), 1U) << "what was written aside is gone";
  const CacheFolder small(path_, 10, "program 1");
  EXPECT_THAT(small.write("other", "text"), HasSubstr(" bytes, and CompileOptions::cache_limit_bytes is 10"));
}

TEST_F(Folder, TheOldestFilesGoFirst) {
  const std::string text(1000, 'x');
  const auto write = [&](const CacheFolder& folder, const std::string& key, int hours_ago) {
    ASSERT_EQ(folder.write(key, text), "");
    fs::last_write_time(folder.file_of(key), fs::file_time_type::clock::now() - std::chrono::hours(hours_ago));
  };
  write(folder_, "second", 2);
  write(folder_, "third", 1);
  write(folder_, "first", 3);
  put(path_ / "a.stranger", std::string(5000, 'x'));  // not a file of the cache
  const CacheFolder of_three(path_, 3500, "program 1");
  ASSERT_EQ(of_three.write("fourth", text), "");
  EXPECT_FALSE(folder_.read("first").stored);
  for (const char* key : {"second", "third", "fourth"}) EXPECT_TRUE(folder_.read(key).stored) << key;
  const CacheFolder of_one(path_, 1500, "program 1");
  ASSERT_EQ(of_one.write("fifth", text), "");
  for (const char* key : {"second", "third", "fourth"}) EXPECT_FALSE(folder_.read(key).stored) << key;
  EXPECT_TRUE(folder_.read("fifth").stored);
  EXPECT_TRUE(fs::exists(path_ / "a.stranger"));
}

// Writes a text of `letter` alone 200 times, and reads after each write. Meanwhile, another process does the same with
// another letter and another length. Returns 0 if every write and read succeeds and no text that is read mixes letters.
int write_and_read(const CacheFolder& folder, char letter) {
  const std::string text(letter == 'a' ? 100000 : 3000, letter);
  for (int i = 0; i < 200; ++i) {
    if (!folder.write("key", text).empty()) return 1;
    const auto found = folder.read("key");
    if (!found.stored) return 2;
    if (found.stored->find_first_not_of(found.stored->front()) != std::string::npos) return 3;
  }
  return 0;
}

TEST_F(Folder, ProcessesMayWriteAtOnce) {
  std::vector<pid_t> children;
  for (const char letter : {'a', 'b'}) {
    children.push_back(fork());
    if (children.back() == 0) _exit(write_and_read(folder_, letter));
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  EXPECT_THAT(names_in(path_), ElementsAre(folder_.file_of("key").filename().string()));
}

}  // namespace
}  // namespace rehearse::compiler
