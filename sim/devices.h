// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

/// Devices of kernels and matrix units: one spelling for every table of rows. Data only: no
/// algorithm asks for a device.
namespace kvsim::devices {

/// One device, which stands for its class.
struct Device {
  std::string_view name;          ///< "h100": how names of matrix units and kernels begin
  std::string_view device_class;  ///< "H100 (sm90)": what the rows have, and what is printed
  /// What decides how work is split; 0: decides nothing in any row.
  std::int64_t multiprocessors = 0;
};

// Multiprocessors as the vendors count them: of the SXM boards, and AMD's compute units.
inline constexpr Device v100{"v100", "V100 (sm70)", 80};
inline constexpr Device t4{"t4", "T4 (sm75)"};
inline constexpr Device a100{"a100", "A100 (sm80)", 108};
inline constexpr Device ada{"ada", "Ada (sm89)"};
inline constexpr Device h100{"h100", "H100 (sm90)", 132};
inline constexpr Device b200{"b200", "B200 (sm100)", 148};
inline constexpr Device rtxpro6000{"rtxpro6000", "RTX PRO 6000 (sm120)"};
inline constexpr Device mi100{"mi100", "MI100 (gfx908)"};
inline constexpr Device mi210{"mi210", "MI210 (gfx90a)"};
inline constexpr Device mi300{"mi300", "MI300X (gfx942)", 304};
inline constexpr Device cpu{"x86", "CPU"};
inline constexpr Device any{"any", "any"};

/// Every device.
inline constexpr std::array all{v100,       t4,    a100,  ada,   h100, b200,
                                rtxpro6000, mi100, mi210, mi300, cpu,  any};

/// The class of the device that the name of a matrix unit begins with; the name itself where no
/// device is called so.
[[nodiscard]] constexpr std::string_view class_of(std::string_view name) {
  for (const Device& device : all) {
    if (device.name == name) return device.device_class;
  }
  return name;
}

}  // namespace kvsim::devices
