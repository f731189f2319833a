// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

/// \file
/// Writes tests/golden/cpu/vdpbf16ps.safetensors from this CPU's own instruction.
/// scripts/cpu_goldens calls it:  vdpbf16ps_golden FILE CPU DATE COMMAND

#include <cstdio>
#include <string>
#include <vector>

#include "model/safetensors_writer.h"
#include "tests/sim/units/vdpbf16ps_cases.h"

namespace kvsim {
namespace {

void append(std::vector<std::byte>& bytes, std::uint32_t code, int width) {
  for (int shift = 0; shift < width; shift += 8) {
    bytes.push_back(static_cast<std::byte>(code >> shift & 0xff));
  }
}

int write_golden(const std::string& path, std::vector<MetadataEntry> metadata) {
  std::vector<Bf16Pair> cases(bf16_case_count);
  for (std::size_t i = 0; i < cases.size(); ++i) cases[i] = bf16_case(i);
  std::vector<std::uint32_t> results(cases.size());
  cpu_vdpbf16ps(cases, results);
  const std::vector<std::size_t> rows = sharpest(results, 1000);
  std::vector<std::byte> a, b, c, d;
  for (const std::size_t i : rows) {
    for (int j = 0; j < 2; ++j) {
      append(a, cases[i].a[j], 16);
      append(b, cases[i].b[j], 16);
    }
    append(c, cases[i].c, 32);
    append(d, results[i], 32);
  }
  const auto count = static_cast<std::int64_t>(rows.size());
  const std::vector<Tensor> tensors{{"a", Dtype::bf16, {count, 2}, a},
                                    {"b", Dtype::bf16, {count, 2}, b},
                                    {"c", Dtype::f32, {count}, c},
                                    {"d", Dtype::f32, {count}, d}};
  metadata.push_back({"cases", std::to_string(cases.size())});
  metadata.push_back({"sha256_of_all_results", digest_of(results)});
  metadata.push_back({"rows", "the cases that refute most wrong rules"});
  const auto written = write_safetensors(path, tensors, metadata);
  if (!written) {
    std::fprintf(stderr, "vdpbf16ps_golden: %s\n", written.error().message.c_str());
    return 3;
  }
  return 0;
}

}  // namespace
}  // namespace kvsim

int main(int count, char** arguments) {
  if (count != 5) {
    std::fputs("usage: vdpbf16ps_golden FILE CPU DATE COMMAND\n", stderr);
    return 2;
  }
  if (!kvsim::cpu_has_vdpbf16ps()) {
    std::fputs("vdpbf16ps_golden: this CPU lacks AVX512-BF16\n", stderr);
    return 5;
  }
  return kvsim::write_golden(arguments[1], {{"instruction", "VDPBF16PS"},
                                            {"cpu", arguments[2]},
                                            {"date", arguments[3]},
                                            {"command", arguments[4]}});
}
