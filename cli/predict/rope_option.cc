// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/predict/rope_option.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu/setting.h"
#include "gpu/torch_engine.h"
#include "gpu/torch_rope.h"

namespace kvsim {
namespace {

constexpr std::string_view of_kernel = "kernel";

}  // namespace

Result<GivenRope> given_rope(const ParsedOptions& options, const DecoderShape& shape,
                             const softfloat::Format& storage) {
  constexpr std::array names{of_kernel, gpu::torch_cpu_engine_name};
  const std::string name = options.value("--rope").value_or(std::string(of_kernel));
  if (std::ranges::find(names, name) == names.end()) return unknown_word("--rope", name, names);
  const auto setting = options.value("--setting");
  if (name == of_kernel) {
    if (!setting) return GivenRope{};
    return Error{ErrorKind::usage,
                 "--setting is given without libtorch; it is accepted with --rope torch-cpu"};
  }
  if (setting) {
    std::vector<std::string_view> known;
    known.reserve(gpu::setting_rows().size());
    for (const gpu::SettingRow& row : gpu::setting_rows()) known.push_back(row.name);
    if (std::ranges::find(known, *setting) == known.end()) {
      return unknown_word("--setting", *setting, known);
    }
    if (const auto applied = gpu::apply_setting(*setting); !applied) return applied.error();
  }
  Result<RopeSource> source = gpu::torch_rope_source(shape, storage);
  if (!source) return source.error();
  return GivenRope{name, std::string(gpu::current_setting().name), std::move(*source)};
}

}  // namespace kvsim
