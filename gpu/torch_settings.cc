// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/torch_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "model/quote.h"
#include "softfloat/formats.h"

namespace kvsim::gpu {
namespace {

constexpr std::array<std::pair<std::string_view, AttentionFunction>, 4> attentions{
    {{"eager", AttentionFunction::eager},
     {"sdpa", AttentionFunction::sdpa},
     {"sdpa-flash", AttentionFunction::sdpa_flash},
     {"sdpa-math", AttentionFunction::sdpa_math}}};
constexpr std::int64_t largest_threads = 1024;

Error refuse(const ArmSetting& setting, std::string_view accepted) {
  return {ErrorKind::usage, fmt::format("setting {} is {}; accepted: {}", setting.key,
                                        quote(setting.value), accepted)};
}

Result<AttentionFunction> attention_of(const ArmSetting& setting, const TorchLimits& limits) {
  const auto* const found = std::ranges::find(attentions, std::string_view(setting.value),
                                              &decltype(attentions)::value_type::first);
  if (found == attentions.end()) return refuse(setting, "eager, sdpa, sdpa-flash, sdpa-math");
  const AttentionFunction attention = found->second;
  if (limits.has_soft_cap && attention != AttentionFunction::eager) {
    return refuse(setting, "eager, as the model caps its scores");
  }
  if (limits.on_cuda && attention == AttentionFunction::sdpa_flash) {
    return refuse(setting, "eager, sdpa, sdpa-math on a CUDA device");
  }
  return attention;
}

Result<softfloat::Format> storage_of(const ArmSetting& setting) {
  constexpr std::array formats{softfloat::bfloat16, softfloat::binary16, softfloat::binary32,
                               softfloat::binary64};
  const softfloat::NamedFormat* const row = softfloat::find_format(setting.value);
  if (row == nullptr || std::ranges::find(formats, row->format) == formats.end()) {
    return refuse(setting, "bfloat16, binary16, binary32, binary64");
  }
  return row->format;
}

Result<std::int64_t> threads_of(const ArmSetting& setting) {
  std::int64_t value = 0;
  const char* const end = setting.value.data() + setting.value.size();
  const auto [at, error] = std::from_chars(setting.value.data(), end, value);
  if (error != std::errc() || at != end || value < 1 || value > largest_threads) {
    return refuse(setting, fmt::format("1 to {}", largest_threads));
  }
  return value;
}

}  // namespace

std::string_view to_string(AttentionFunction attention) {
  return attentions.at(static_cast<std::size_t>(attention)).first;
}

Result<TorchSettings> torch_settings(std::span<const ArmSetting> settings,
                                     const TorchLimits& limits) {
  TorchSettings result;
  result.storage = limits.storage;
  if (limits.has_soft_cap) result.attention = AttentionFunction::eager;
  std::string others;
  for (const ArmSetting& setting : settings) {
    if (setting.key == "attention") {
      const Result<AttentionFunction> attention = attention_of(setting, limits);
      if (!attention) return attention.error();
      result.attention = *attention;
      continue;
    }
    if (setting.key == "storage") {
      const Result<softfloat::Format> storage = storage_of(setting);
      if (!storage) return storage.error();
      result.storage = *storage;
      others += fmt::format("+storage={}", softfloat::format_name(result.storage));
    } else if (setting.key == "threads") {
      const Result<std::int64_t> threads = threads_of(setting);
      if (!threads) return threads.error();
      result.threads = *threads;
      others += fmt::format("+threads={}", result.threads);
    } else {
      return Error{ErrorKind::usage,
                   fmt::format("setting {}; libtorch accepts: attention, kv-heads, storage, "
                               "threads, verify-width",
                               quote(setting.key))};
    }
  }
  result.name = std::string(to_string(result.attention)) + others;
  return result;
}

}  // namespace kvsim::gpu
