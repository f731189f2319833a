// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "cli/output.h"

namespace kvsim {

/// Replaces each long text of the column `source` by its number, and adds the texts as notes.
void number_sources(Table& table);

}  // namespace kvsim
