// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <algorithm>
#include <string>
#include <utility>

#include "cli/replay/report.h"
#include "softfloat/formats.h"
#include "softfloat/text.h"

namespace kvsim {
namespace {

using softfloat::Bits;
using softfloat::Format;

/// Ranges and groups that JSON lists; the numbers of all of them stand beside.
constexpr std::size_t most_listed = 64;

Json code_json(const Format& format, Bits code) {
  Json out = Json::object();
  out["bits"] = softfloat::to_bits_text(format, code);
  out["hex_float"] = softfloat::to_hex_float(format, code);
  out["decimal"] = softfloat::to_decimal(format, code);
  return out;
}

Json ranges_json(std::span<const IndexRange> ranges) {
  Json out = Json::array();
  for (const IndexRange& range : ranges.first(std::min(most_listed, ranges.size()))) {
    out.push_back(Json::array({range.first, range.last}));
  }
  return out;
}

Json map_json(const std::vector<MismatchGroup>& map) {
  Json out = Json::array();
  for (std::size_t i = 0; i < std::min(most_listed, map.size()); ++i) {
    Json group = Json::object();
    group["heads"] = ranges_json(map[i].heads);
    group["positions"] = ranges_json(map[i].positions);
    group["position_ranges"] = map[i].positions.size();
    group["mismatches"] = map[i].different;
    out.push_back(std::move(group));
  }
  return out;
}

Json element_json(const Replay& replay, std::int64_t index, std::span<const std::byte> found,
                  std::span<const std::byte> other, std::string_view other_name,
                  const Format& format) {
  Json out = Json::object();
  out["at"] = element_at(replay.shape, index);
  out["found"] = code_json(format, code_at(format, found, index));
  out[std::string(other_name)] = code_json(format, code_at(format, other, index));
  return out;
}

void add_comparison(Json& out, const MappedComparison& comparison, bool with_map) {
  const Comparison& summary = comparison.summary;
  out["mismatches"] = summary.different;
  out["max_ulp"] = summary.max_ulp;
  out["max_row_ulp"] = json_number(comparison.max_row_ulp);
  out["mean_ulp"] = json_number(summary.mean_ulp);
  out["without_distance"] = summary.not_a_number;
  out["groups"] = with_map ? Json(comparison.map.size()) : Json();
  out["map"] = with_map ? map_json(comparison.map) : Json();
}

Json band_json(const std::optional<ExpBand>& band) {
  if (!band) return {};
  Json out = Json::object();
  out["exp_ulp"] = json_number(band->ulp);
  out["reruns"] = band->reruns;
  out["mismatches"] = band->different;
  out["max_ulp"] = band->max_ulp;
  return out;
}

Json output_json(const Replay& replay, const ReplayFindings& findings, std::size_t i) {
  const ReplayOutput& output = replay.outputs[i];
  Json out = Json::object();
  out["name"] = output.name;
  out["format"] = softfloat::format_name(output.format);
  out["sha256"] = findings.digests[i];
  out["class"] = class_name(findings.classes[i]);
  out["evidence"] = output.evidence ? Json(softfloat::to_string(*output.evidence)) : Json();
  out["choices"] = output.choices;
  switch (output.exp) {
    case ExpKnowledge::none:
      out["exp"] = nullptr;
      break;
    case ExpKnowledge::exact:
      out["exp"] = "exact";
      break;
    case ExpKnowledge::bounded:
      out["exp"] = "bounded";
      break;
  }
  out["band"] = band_json(output.band);
  out["expected"] = nullptr;
  if (!findings.expected.empty()) {
    Json compared = Json::object();
    add_comparison(compared, findings.expected[i], true);
    out["expected"] = std::move(compared);
  }
  return out;
}

}  // namespace

Json replay_result_json(const Replay& replay, const ReplayFindings& findings) {
  Json result = Json::object();
  std::int64_t elements = 1;
  for (const std::int64_t size : replay.shape) elements *= size;
  result["shape"] = replay.shape;
  result["rows"] = replay.heads * replay.positions;
  result["elements"] = elements;
  result["mismatches"] = nullptr;
  result["first"] = nullptr;
  result["outputs"] = Json::array();
  for (std::size_t i = 0; i < replay.outputs.size(); ++i) {
    result["outputs"].push_back(output_json(replay, findings, i));
  }
  result["classes"] = Json::array();
  for (std::size_t number = 0; number < findings.representatives.size(); ++number) {
    Json members = Json::array();
    for (std::size_t i = 0; i < replay.outputs.size(); ++i) {
      if (findings.classes[i] == number) members.push_back(replay.outputs[i].name);
    }
    result["classes"].push_back(std::move(members));
  }
  result["pairs"] = Json::array();
  auto pair = findings.pairs.begin();
  for (std::size_t i = 0; i < findings.representatives.size(); ++i) {
    for (std::size_t j = i + 1; j < findings.representatives.size(); ++j, ++pair) {
      Json one = Json::object();
      one["classes"] = Json::array({class_name(i), class_name(j)});
      const std::optional<MappedComparison>& compared = *pair;
      if (compared) {
        add_comparison(one, *compared, i == 0);
        const ReplayOutput& found = replay.outputs[findings.representatives[i]];
        const ReplayOutput& other = replay.outputs[findings.representatives[j]];
        one["first"] = element_json(replay, compared->summary.first, found.bytes, other.bytes,
                                    "other", found.format);
      } else {
        one["mismatches"] = nullptr;  // of two formats
      }
      result["pairs"].push_back(std::move(one));
    }
  }
  return result;
}

}  // namespace kvsim
