// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <string>

#include "cli/models/private_python.h"
#include "cli/output.h"
#include "model/gguf_import.h"

namespace kvsim {

/// What `kvsim import` and `kvsim fetch` say of a model that now lies at `folder`.
[[nodiscard]] Report imported_report(const GgufFile& file, const ImportedModel& model,
                                     const std::string& folder);

}  // namespace kvsim
