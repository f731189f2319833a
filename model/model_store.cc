// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/model_store.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "model/fetch_rows.h"
#include "model/quote.h"
#include "softfloat/suggest.h"

namespace kvsim {
namespace {

namespace fs = std::filesystem;

bool exists(const std::string& path) {
  std::error_code none;
  return !path.empty() && fs::exists(path, none);
}

std::string joined(const std::string& folder, std::string_view below) {
  return folder.empty() ? std::string() : (fs::path(folder) / below).string();
}

std::string names_of(const std::vector<NamedModel>& models) {
  std::string names;
  for (const NamedModel& model : models) {
    if (!names.empty()) names += ", ";
    names += model.name;
    if (!model.is_there && model.name != default_model) {
      names += fmt::format(" (after kvsim fetch {})", model.name);
    }
  }
  return names;
}

Result<std::string> path_of(const NamedModel& model) {
  if (model.is_there) return model.path;
  if (model.name == default_model) {
    return Error{ErrorKind::file,
                 fmt::format("model {} is not there; accepted: kvsim run from its source tree, "
                             "which holds it",
                             model.name)};
  }
  return Error{ErrorKind::file,
               fmt::format("model {} has not been fetched; accepted: the name after kvsim fetch {}",
                           model.name, model.name)};
}

}  // namespace

std::string fetched_folder(const ModelPlaces& places, std::string_view name) {
  return joined(joined(places.cache, "models"), name);
}

std::vector<NamedModel> named_models(const ModelPlaces& places) {
  std::vector<NamedModel> models;
  models.reserve(1 + fetch_rows().size());
  models.push_back({std::string(default_model), joined(places.repository, "data/kv-tiny")});
  for (const FetchRow& row : fetch_rows()) {
    models.push_back({std::string(row.name), fetched_folder(places, row.name)});
  }
  for (NamedModel& model : models) model.is_there = exists(model.path);
  return models;
}

Result<std::string> find_model(std::string_view name_or_path, const ModelPlaces& places) {
  const std::vector<NamedModel> models = named_models(places);
  std::vector<std::string_view> names;
  names.reserve(models.size());
  for (const NamedModel& model : models) {
    if (model.name == name_or_path) return path_of(model);
    names.push_back(model.name);
  }
  if (std::string path(name_or_path); exists(path)) return path;
  if (name_or_path.find('/') != std::string_view::npos) {
    return Error{ErrorKind::file,
                 fmt::format("{}: no such file or folder; accepted: a model's folder, a file of "
                             "llama2.c, or a name: {}",
                             quote_path(name_or_path), names_of(models))};
  }
  const std::string_view near = softfloat::nearest(name_or_path, names);
  return Error{
      ErrorKind::usage,
      fmt::format("unknown model {}; accepted are {}, and paths{}", quote(name_or_path),
                  names_of(models), near.empty() ? "" : fmt::format("; did you mean {}?", near))};
}

}  // namespace kvsim
