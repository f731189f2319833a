// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "model/model_store.h"

namespace kvsim {

/// Where models lie here. The repository is the source tree that the program was built from; the
/// cache is $KVSIM_CACHE, else $XDG_CACHE_HOME/kvsim, else $HOME/.cache/kvsim; a variable that is
/// empty or no absolute path counts as not set.
[[nodiscard]] ModelPlaces model_places();

/// The folder of the plans that `kvsim experiment --config` knows by name.
[[nodiscard]] std::string plan_folder();

/// A file of the source tree's folder scripts.
[[nodiscard]] std::string script_path(std::string_view name);

}  // namespace kvsim
