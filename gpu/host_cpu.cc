// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/host_cpu.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace kvsim::gpu {
namespace {

#if defined(__x86_64__)

using Registers = std::array<std::uint32_t, 4>;  // eax, ebx, ecx, edx

Registers cpuid(std::uint32_t leaf, std::uint32_t subleaf = 0) {
  Registers r{};
  if (__get_cpuid_count(leaf, subleaf, &r[0], &r[1], &r[2], &r[3]) == 0) r = {};
  return r;
}

void append(std::string& text, std::uint32_t word) {
  std::array<char, 4> bytes{};
  std::memcpy(bytes.data(), &word, 4);
  for (const char byte : bytes) {
    if (byte >= ' ' && byte <= '~') text += byte;
  }
}

struct FeatureRow {
  std::string_view name;
  std::uint32_t leaf;
  std::uint32_t subleaf;
  std::size_t word;  // index in Registers
  int bit;
};

// Intel, Software Developer's Manual, volume 2, CPUID (2024).
constexpr FeatureRow feature_rows[] = {
    {"avx", 1, 0, 2, 28},        {"avx2", 7, 0, 1, 5},         {"fma", 1, 0, 2, 12},
    {"f16c", 1, 0, 2, 29},       {"avx512f", 7, 0, 1, 16},     {"avx512bw", 7, 0, 1, 30},
    {"avx512dq", 7, 0, 1, 17},   {"avx512vl", 7, 0, 1, 31},    {"avx512_vnni", 7, 0, 2, 11},
    {"avx512_bf16", 7, 1, 0, 5}, {"avx512_fp16", 7, 0, 3, 23}, {"avx_vnni", 7, 1, 0, 4},
    {"amx_tile", 7, 0, 3, 24},   {"amx_bf16", 7, 0, 3, 22},    {"amx_int8", 7, 0, 3, 25},
};

HostCpu ask() {
  HostCpu cpu;
  const Registers name = cpuid(0);
  for (const std::size_t word : {1U, 3U, 2U}) append(cpu.vendor, name[word]);
  if (cpuid(0x80000000U)[0] >= 0x80000004U) {
    for (std::uint32_t leaf = 0x80000002U; leaf <= 0x80000004U; ++leaf) {
      for (const std::uint32_t word : cpuid(leaf)) append(cpu.model, word);
    }
  }
  while (!cpu.model.empty() && cpu.model.back() == ' ') cpu.model.pop_back();
  while (!cpu.model.empty() && cpu.model.front() == ' ') cpu.model.erase(0, 1);
  for (const FeatureRow& row : feature_rows) {
    if ((cpuid(row.leaf, row.subleaf)[row.word] >> row.bit & 1U) == 0) continue;
    cpu.features += cpu.features.empty() ? "" : " ";
    cpu.features += row.name;
  }
  return cpu;
}

#else

HostCpu ask() { return {"unknown", "unknown", ""}; }

#endif

}  // namespace

const HostCpu& host_cpu() {
  static const HostCpu cpu = ask();
  return cpu;
}

void add_host_cpu(Fingerprint& fingerprint) {
  const HostCpu& cpu = host_cpu();
  fingerprint.entries.emplace_back(fingerprint_names::cpu_vendor, cpu.vendor);
  fingerprint.entries.emplace_back(fingerprint_names::cpu_model, cpu.model);
  fingerprint.entries.emplace_back(fingerprint_names::cpu_features, cpu.features);
}

}  // namespace kvsim::gpu
