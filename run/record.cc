// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/record.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "run/divergence.h"
#include "softfloat/mutants.h"
#include "softfloat/sha256.h"

namespace kvsim {
namespace {

// Written by hand, because the order of the keys and the digits of numbers are part of the format.
// Texts go through the JSON library, which escapes them; bytes that are not UTF-8 are replaced.
std::string text(std::string_view value) {
  return nlohmann::json(value).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

/// The shortest text that reads back as the same number; "-0" alone would read as a whole number.
std::string number(double value) {
  if (value == 0 && std::signbit(value)) return "-0.0";
  if (mutant_is_on(Mutant::record_digits_cut)) return fmt::format("{:.15g}", value);
  return fmt::format("{}", value);
}

template <class List, class Print>
std::string list(const List& values, Print print) {
  std::string out = "[";
  for (const auto& value : values) {
    if (out.size() > 1) out += ',';
    out += print(value);
  }
  return out + "]";
}

std::string texts(const std::vector<std::string>& values) { return list(values, text); }

std::string run_object(const RecordRun& run) {
  const std::string arms = list(run.arms, [](const RecordArm& arm) {
    return fmt::format(R"({{"label":{},"arm":{},"dispatch":{}}})", text(arm.label), text(arm.text),
                       text(arm.dispatch));
  });
  return fmt::format(
      R"({{"version":{},"engine":{},"model":{},"model_sha256":{},"storage":{},"sampling":{},)"
      R"("seed":{},"max_new_tokens":{},"teacher_forced":{},"arms":{}}})",
      text(run.version), text(run.engine), text(run.model), text(run.model_sha256),
      text(run.storage), text(run.sampling), run.seed, run.max_new_tokens, run.teacher_forced,
      arms);
}

std::string digests_object(const RecordDigests& digests) {
  const std::string state = list(digests.state, [](const StateDigest& entry) {
    return fmt::format(R"({{"layer":{},"operation":{},"head":{},"position":{},"digest":{}}})",
                       entry.layer, text(entry.operation), entry.head, entry.position,
                       text(entry.digest));
  });
  return fmt::format(R"({{"state":{},"layer":{},"route":{},"token":{}}})", state,
                     texts(digests.layer), texts(digests.route), text(digests.token));
}

template <class Word, class Value>
std::string digest_of_words(std::span<const Value> values, Word nan) {
  std::vector<std::byte> bytes;
  bytes.reserve(sizeof(Word) * values.size());
  for (const Value value : values) {
    const Word bits = std::isnan(value) ? nan : std::bit_cast<Word>(value);
    for (unsigned shift = 0; shift < 8 * sizeof(Word); shift += 8) {
      bytes.push_back(static_cast<std::byte>((bits >> shift) & 0xffU));
    }
  }
  return sha256(bytes).substr(0, 16);
}

}  // namespace

std::string to_line(const PromptRecord& record) {
  return fmt::format(R"({{"schema":{},"kind":"prompt","prompt":{},"prompt_ids":{},"run":{}}})"
                     "\n",
                     text(record_schema), record.prompt,
                     list(record.prompt_ids, [](std::int64_t id) { return fmt::format("{}", id); }),
                     run_object(record.run));
}

std::string to_line(const StepRecord& record) {
  const std::string top = list(record.top, [](const RecordTop& entry) {
    return fmt::format(R"({{"id":{},"logit":{},"logprob":{}}})", entry.id, number(entry.logit),
                       number(entry.logprob));
  });
  const std::string margin =
      record.margin ? fmt::format(R"({{"logits":{},"ulps":{}}})", number(record.margin->logits),
                                  number(record.margin->ulps))
                    : "null";
  return fmt::format(R"({{"schema":{},"kind":"step","prompt":{},"arm":{},"step":{},"token":{},)"
                     R"("logprob":{},"top":{},"margin":{},"digests":{},)"
                     R"("cost":{{"multiply_adds":{}}}}})"
                     "\n",
                     text(record_schema), record.prompt, text(record.arm), record.step,
                     record.token, number(record.logprob), top, margin,
                     digests_object(record.digests), record.cost.multiply_adds);
}

std::string to_line(const ComparisonRecord& record) {
  const auto optional_number = [](const std::optional<double>& value) {
    return value ? number(*value) : std::string("null");
  };
  return fmt::format(
      R"({{"schema":{},"kind":"comparison","prompt":{},"first":{},"second":{},"step":{},)"
      R"("same_context":{},"kl":{},"js":{},"largest_logit_difference":{},)"
      R"("differing_logits":{},"top_two_error":{}}})"
      "\n",
      text(record_schema), record.prompt, text(record.first), text(record.second), record.step,
      record.same_context, optional_number(record.kl), number(record.js),
      number(record.largest_logit_difference), record.differing_logits,
      optional_number(record.top_two_error));
}

std::string to_line(const RecordLine& record) {
  return std::visit([](const auto& line) { return to_line(line); }, record);
}

Result<RecordedLogits> recorded_logits(std::span<const double> logits, std::int64_t token,
                                       const softfloat::Format& storage) {
  if (token < 0 || token >= std::ssize(logits)) {
    return Error{ErrorKind::usage,
                 fmt::format("token {} of {} logits; accepted: one of them", token, logits.size())};
  }
  const Result<SoftmaxNormalizer> normalizer = softmax_normalizer(logits);
  if (!normalizer) return normalizer.error();
  RecordedLogits result;
  result.logprob = log_probability(*normalizer, logits[static_cast<std::size_t>(token)]);
  for (const TokenLogit& entry : largest_logits(logits, record_top_tokens)) {
    if (!std::isfinite(entry.logit)) break;  // −infinity: what follows is as well
    result.top.push_back({entry.token, entry.logit, log_probability(*normalizer, entry.logit)});
  }
  if (result.top.size() > 1) {
    result.margin = margin(storage, result.top[0].logit, result.top[1].logit);
  }
  return result;
}

std::string digest_of(std::span<const float> values) {
  return digest_of_words<std::uint32_t>(values, 0x7fc00000U);
}

std::string digest_of(std::span<const double> values) {
  return digest_of_words<std::uint64_t>(values, 0x7ff8000000000000U);
}

}  // namespace kvsim
