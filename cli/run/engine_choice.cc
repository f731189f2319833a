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

}  // namespace

std::span<const OptionSpec> engine_option_rows() { return rows; }

Result<std::string> chosen_engine(const ParsedOptions& options) {
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
  if (name == sim_engine_name) {
    if (!setting) return name;
    return Error{ErrorKind::usage,
                 "--setting is given for the simulator; it is accepted with --engine torch-cpu"};
  }
  if (setting) {
    if (const auto applied = gpu::apply_setting(*setting); !applied) return applied.error();
  }
  const auto library = gpu::torch_library(fmt::format("--engine {}", name));
  if (!library) return library.error();
  return name;
}

Result<std::unique_ptr<Engine>> make_engine(std::string_view name, Checkpoint checkpoint,
                                            const std::string& model,
                                            const EngineOptions& simulated) {
  if (name == sim_engine_name) return make_sim_engine(std::move(checkpoint), model, simulated);
  return gpu::make_torch_engine(name, std::move(checkpoint), model);
}

}  // namespace kvsim
