// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace kvsim::gpu {

/// Bytes that begin a stated distance behind a multiple of 64: kernels may choose by address.
class AlignedBuffer {
 public:
  /// `misalignment`: 0 … 63.
  explicit AlignedBuffer(std::size_t bytes, std::int64_t misalignment = 0) : storage_(bytes + 128) {
    const auto address = reinterpret_cast<std::uintptr_t>(storage_.data());
    offset_ = (64 - address % 64) % 64 + static_cast<std::size_t>(misalignment);
  }
  /// A copy of the numbers.
  explicit AlignedBuffer(std::span<const float> values, std::int64_t misalignment = 0)
      : AlignedBuffer(values.size_bytes(), misalignment) {
    if (!values.empty()) std::memcpy(data(), values.data(), values.size_bytes());
  }
  AlignedBuffer(AlignedBuffer&&) = default;  // a moved vector keeps its address
  AlignedBuffer& operator=(AlignedBuffer&&) = default;
  AlignedBuffer(const AlignedBuffer&) = delete;
  AlignedBuffer& operator=(const AlignedBuffer&) = delete;
  ~AlignedBuffer() = default;

  [[nodiscard]] std::byte* data() { return storage_.data() + offset_; }
  [[nodiscard]] float* floats() { return reinterpret_cast<float*>(data()); }

 private:
  std::vector<std::byte> storage_;
  std::size_t offset_ = 0;
};

}  // namespace kvsim::gpu
