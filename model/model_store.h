// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "softfloat/result.h"

namespace kvsim {

/// Where models lie that are called by name. The command line fills it from the environment
/// (cli/model_places.h); a test names folders of its own.
struct ModelPlaces {
  std::string repository;  ///< root of kvsim's source tree, which holds kv-tiny; may be empty
  std::string cache;       ///< what `kvsim fetch` fills: models/NAME; empty: there is none
};

/// Name of the model that comes with the source tree: the default of every command.
inline constexpr std::string_view default_model = "kv-tiny";

/// A model that can be called by name.
struct NamedModel {
  std::string name;
  std::string path;  ///< where it lies or would lie; empty where no folder for it is known
  bool is_there = false;
};

/// kv-tiny, then the models that `kvsim fetch` knows, in the order of its table.
[[nodiscard]] std::vector<NamedModel> named_models(const ModelPlaces& places);

/// The folder of a fetched model: CACHE/models/NAME.
[[nodiscard]] std::string fetched_folder(const ModelPlaces& places, std::string_view name);

/// The path to hand to load_checkpoint() and Tokenizer::load(): a known name first, then a folder
/// or file that exists; "./kv-tiny" is always a path. Errors name the text: an unknown name with
/// the known ones and the near one (usage), a name that has not been fetched, with the command that
/// fetches it, and a path that does not exist (file).
[[nodiscard]] Result<std::string> find_model(std::string_view name_or_path,
                                             const ModelPlaces& places);

}  // namespace kvsim
