// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cli/command.h"
#include "cli/model_places.h"
#include "cli/models/imported_report.h"
#include "cli/models/model_folder.h"
#include "cli/models/private_python.h"
#include "cli/printable.h"
#include "cli/progress.h"
#include "cli/sink.h"
#include "model/gguf_import.h"

namespace kvsim {
namespace {

constexpr std::array import_options{
    OptionSpec{"--out", "FOLDER", "the model's folder to make; nothing may stand there"},
    OptionSpec{"--dtype", "NAME",
               "element type of the weights: bf16 (default; rounded once, to nearest even) or f32"},
};

std::optional<Dtype> dtype_named(std::string_view name) {
  for (const std::string_view each : {"bf16", "bfloat16"}) {
    if (name == each) return Dtype::bf16;
  }
  for (const std::string_view each : {"f32", "fp32", "float32"}) {
    if (name == each) return Dtype::f32;
  }
  return std::nullopt;
}

Result<Answer> run_import(const ParsedOptions& options) {
  const auto usage = [](std::string message) {
    return Error{ErrorKind::usage, std::move(message)};
  };
  if (options.positionals().size() != 1) {
    return usage(
        fmt::format("{} files are given; accepted is one GGUF file", options.positionals().size()));
  }
  const std::optional<std::string> out = options.value("--out");
  if (!out || out->empty()) return usage("--out is missing; accepted is a folder to make");
  const std::string dtype_name = options.value("--dtype").value_or("bf16");
  const std::optional<Dtype> dtype = dtype_named(dtype_name);
  if (!dtype)
    return unknown_word("--dtype", dtype_name, std::array<std::string_view, 2>{"bf16", "f32"});
  const Result<GgufFile> file = GgufFile::open(options.positionals().front(), *dtype);
  if (!file) return file.error();
  Result<std::unique_ptr<ModelFolder>> made_folder = ModelFolder::make(*out);
  if (!made_folder) return made_folder.error();
  FolderWriter& folder = (*made_folder)->writer();
  const Result<PrivatePython> python =
      PrivatePython::make(model_places().cache, error_lines("import", options.has("--quiet")));
  if (!python) return python.error();
  Progress progress("import", options);
  const Result<ImportedModel> model =
      import_into(*file, *python, [&](double share) { progress.show(share); }, folder);
  if (!model) return model.error();
  if (const Result<bool> done = folder.finish(); !done) return done.error();
  Answer answer;
  answer.report = imported_report(*file, *model, *out);
  answer.report.command = "import";
  return answer;
}

}  // namespace

const Command import_command{
    .name = "import",
    .summary = "convert a GGUF file, once, into a model folder that the other commands read",
    .synopsis = "MODEL.gguf --out FOLDER [OPTIONS]",
    .description =
        "Dequantises every weight to binary32 with the Python package gguf (in a private\n"
        "environment under the cache folder, made on first use), puts the rows of q and k back\n"
        "into Hugging Face's order, takes 1 off Gemma's norm weights, rounds once, and writes a\n"
        "folder as Hugging Face has it: config.json, generation_config.json, the tokenizer,\n"
        "model.safetensors. The SHA-256 of that file is the model's identity (docs/models.md).\n"
        "\n"
        "Accepted are the architectures llama (also Mistral 7B, SmolLM2), gemma2, gemma3, qwen2\n"
        "and qwen3. The folder appears whole or not at all.",
    .options = import_options,
    .examples =
        "  kvsim import SmolLM2-135M-Instruct.Q4_1.gguf --out smollm2\n"
        "  kvsim import model.gguf --out model-f32 --dtype f32",
    .run = run_import,
};

}  // namespace kvsim
