// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <span>

#include "fuzz/property/property.h"

/// The tables that properties() is made of, a file for each.
namespace kvsim::fuzz {

[[nodiscard]] std::span<const Property> arithmetic_properties();
[[nodiscard]] std::span<const Property> sum_properties();
[[nodiscard]] std::span<const Property> unit_properties();
[[nodiscard]] std::span<const Property> attention_properties();
[[nodiscard]] std::span<const Property> decoder_properties();
[[nodiscard]] std::span<const Property> run_properties();
[[nodiscard]] std::span<const Property> text_properties();

}  // namespace kvsim::fuzz
