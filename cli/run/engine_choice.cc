// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/run/engine_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "gpu/setting.h"
#include "gpu/torch_engine.h"
#include "gpu/torch_library.h"
#include "gpu/torch_rope.h"
#include "run/sim_engine.h"

namespace kvsim {
namespace {

constexpr std::array rows{
    OptionSpec{"--engine", "NAME",
               "sim (default: the simulator), or torch-cpu or torch-cuda: libtorch, which computes "
               "as Hugging Face's transformers does (docs/run.md)"},
    OptionSpec{
        "--setting", "NAME",
        "environment of libtorch: installed (default: as it is) or pinned (kernels for AVX2, "
        "oneDNN off)"},
};

/// Whether the simulator takes RoPE factors of libtorch in an arm.
bool takes_torch_rope(std::span<const Arm> arms) {
  return std::ranges::any_of(arms, [](const Arm& arm) {
    return std::ranges::any_of(arm.settings, [](const ArmSetting& setting) {
      return setting.key == "rope" && setting.value == gpu::torch_cpu_engine_name;
    });
  });
}

}  // namespace

std::span<const OptionSpec> engine_option_rows() { return rows; }

Result<std::string> chosen_engine(const ParsedOptions& options, std::span<const Arm> arms) {
  constexpr std::array names{sim_engine_name, gpu::torch_cpu_engine_name,
                             gpu::torch_cuda_engine_name};
  std::string name = options.value("--engine").value_or(std::string(sim_engine_name));
  if (std::ranges::find(names, name) == names.end()) return unknown_word("--engine", name, names);
  const auto setting = options.value("--setting");
  if (setting) {
    std::vector<std::string_view> settings;
    for (const gpu::SettingRow& row : gpu::setting_rows()) settings.push_back(row.name);
    if (std::ranges::find(settings, *setting) == settings.end()) {
      return unknown_word("--setting", *setting, settings);
    }
  }
  const bool is_sim = name == sim_engine_name;
  if (is_sim && !takes_torch_rope(arms)) {
    if (!setting) return name;
    return Error{ErrorKind::usage,
                 "--setting is given for the simulator; it is accepted with --engine torch-cpu, or "
                 "with --set rope=torch-cpu"};
  }
  if (setting) {
    if (const auto applied = gpu::apply_setting(*setting); !applied) return applied.error();
  }
  const auto library =
      gpu::torch_library(is_sim ? fmt::format("rope={}", gpu::torch_cpu_engine_name)
                                : fmt::format("--engine {}", name));
  if (!library) return library.error();
  return name;
}

Result<std::unique_ptr<Engine>> make_engine(std::string_view name, Checkpoint checkpoint,
                                            const std::string& model,
                                            const EngineOptions& simulated) {
  if (name == sim_engine_name) {
    return make_sim_engine(std::move(checkpoint), model, simulated, CommonRows::kept,
                           {gpu::torch_rope_origin()});
  }
  return gpu::make_torch_engine(name, std::move(checkpoint), model);
}

}  // namespace kvsim
