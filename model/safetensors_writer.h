// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "model/safetensors_header.h"
#include "softfloat/result.h"

namespace kvsim {

/// The first part of a safetensors file: the length of the header, the header, and blanks up to a
/// multiple of 8 bytes. Tensors stand in the order given, one after the other; their data follows.
/// Errors (ErrorKind::usage) name what the reader would refuse: names that are not UTF-8 or stand
/// twice, shapes that do not fit the bytes, more of anything than SafetensorsLimits.
[[nodiscard]] Result<std::string> safetensors_prefix(std::span<const Tensor> tensors,
                                                     std::span<const MetadataEntry> metadata = {});

/// The same for tensors whose data is not there yet: their `bytes` are not looked at, only dtype
/// and shape.
[[nodiscard]] Result<std::string> safetensors_prefix_of_shapes(std::span<const Tensor> tensors);

/// Writes a safetensors file and holds the number of bytes written. The bytes go to a file beside
/// the target (`path`.partial-<process>), reach the disk, and only then take the target's name: a
/// failure leaves what stood there. A symbolic link is followed. Errors as of safetensors_prefix,
/// and ErrorKind::file for a target that is no regular file or cannot be written.
[[nodiscard]] Result<std::uint64_t> write_safetensors(const std::string& path,
                                                      std::span<const Tensor> tensors,
                                                      std::span<const MetadataEntry> metadata = {});

}  // namespace kvsim
