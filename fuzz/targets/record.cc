// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
//
// Records of runs from any bytes: records or one line of error; a line that is read is written so
// that it reads back equal, and a second time to the same bytes.
#include "run/record.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "fuzz/targets/input.h"
#include "run/record_reader.h"

namespace {

using kvsim::targets::require;

void check_error(const kvsim::Error& error) {
  require(!error.message.empty() && error.message.size() < 4000);
  for (const char character : error.message) require(static_cast<unsigned char>(character) >= ' ');
  require(error.kind == kvsim::ErrorKind::file);
}

std::string line_of(const kvsim::RecordLine& record) {
  return std::visit([](const auto& line) { return kvsim::to_line(line); }, record);
}

void check_line(std::string_view line) {
  const auto record = kvsim::parse_record_line(line);
  if (!record) return check_error(record.error());
  const std::string written = line_of(*record);
  require(written.find('\n') == written.size() - 1);
  const auto again =
      kvsim::parse_record_line(std::string_view(written).substr(0, written.size() - 1));
  require(again.has_value() && *again == *record && line_of(*again) == written);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto records = kvsim::parse_records(text, "input");
  if (!records) check_error(records.error());
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t length = std::min(rest.find('\n'), rest.size());
    check_line(rest.substr(0, length));
    rest.remove_prefix(std::min(length + 1, rest.size()));
  }
  return 0;
}
