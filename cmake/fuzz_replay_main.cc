// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
//
// Runs a fuzz target over the files and folders named on the command line, without libFuzzer. A
// failing input ends the process; its name is the last line printed.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;

void collect(const fs::path& path, std::vector<fs::path>& files) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    files.push_back(path);
    return;
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
    collect(entry.path(), files);
  }
}

bool replay(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    std::printf("cannot read %s\n", path.c_str());
    return false;
  }
  const std::string text(std::istreambuf_iterator<char>(stream), {});
  std::printf("%s\n", path.c_str());
  std::fflush(stdout);  // so that the name stands when the target ends the process
  // A copy of exactly this size, so that a read beyond the end is caught.
  const std::vector<std::uint8_t> bytes(text.begin(), text.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<fs::path> files;
  for (int i = 1; i < argc; ++i) collect(argv[i], files);
  if (files.empty()) {
    std::printf("no corpus files found: name files or folders that hold some\n");
    return 1;
  }
  bool good = true;
  for (const fs::path& file : files) good = replay(file) && good;
  std::printf("%zu inputs replayed\n", files.size());
  return good ? 0 : 1;
}
