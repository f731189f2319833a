// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/fuzz/blame.h"
#include "cli/fuzz/follow_up.h"
#include "cli/fuzz/model_flip.h"
#include "cli/fuzz/property_command.h"
#include "cli/fuzz/report.h"
#include "cli/fuzz/request.h"
#include "cli/fuzz/search_run.h"
#include "cli/fuzz/shrink.h"
#include "cli/printable.h"
#include "fuzz/flip/case.h"
#include "fuzz/flip/confirm.h"
#include "fuzz/flip/model_case.h"
#include "fuzz/flip/objective.h"
#include "fuzz/flip/score.h"
#include "fuzz/flip/search.h"
#include "fuzz/property/property.h"

namespace kvsim {
namespace {

constexpr std::array fuzz_options{
    OptionSpec{"--target", "NAME",
               "what to look for: flip (default), divergence, kl, bound, tie or nan "
               "(docs/fuzzing.md)"},
    OptionSpec{"--head-dim", "N", "attention: elements of one head, 1 to 65536 (default 64)"},
    OptionSpec{"--gqa", "R", "attention: query heads that read one K/V head (default 1)"},
    OptionSpec{"--kv-heads", "N", "attention: K/V heads, 1 to 1024 (default 1)"},
    OptionSpec{"--kv-len", "N", "attention: keys in the cache, 1 to 65536 (default 1024)"},
    OptionSpec{"--terms", "K",
               "sums instead: the logits of two tokens are dot products of K terms"},
    OptionSpec{"--format", "NAME", "storage format of every number (default fp16)"},
    OptionSpec{"--accumulate", "NAME", "sums: format of partial sums (default fp32)"},
    OptionSpec{"--product", "NAME", "sums: products are rounded (default), fused or exact"},
    OptionSpec{"--device", "NAME",
               "attention: whose kernels decode and prefill are: h100 (default), a100, …"},
    OptionSpec{"--on", "NAME",
               "attention: kernel of cache-on, for one query: a name of kvsim kernels, decode "
               "(default) or prefill. sums: an order (docs/orders.md; default sequential)"},
    OptionSpec{"--off", "NAME",
               "attention: kernel of cache-off, where the query is the last of as many as there "
               "are keys (default prefill). sums: an order (default pairwise)"},
    OptionSpec{"--alone", "", "attention: cache-off computes the query alone, too"},
    OptionSpec{"--on-splits", "N",
               "attention: parts of the keys in cache-on (default 0: the kernel's choice)"},
    OptionSpec{"--off-splits", "N", "attention: the same in cache-off"},
    OptionSpec{"--on-head", "NAME",
               "attention: linear kernel that makes cache-on's logits: a name of kvsim kernels, or "
               "decode or prefill for the device's (default: exact sums)"},
    OptionSpec{"--off-head", "NAME", "attention: the same in cache-off"},
    OptionSpec{"--runs", "N",
               "cases to try, and as many at random to compare with (default 4096); property: runs "
               "of each one (default 100)"},
    OptionSpec{"--time", "T",
               "stop after about that long, such as 60s or 2m; the answer says how "
               "many runs that were"},
    OptionSpec{"--range", "FILE",
               "magnitudes of numbers: those of q, k and v in a safetensors file, as kvsim predict "
               "--tensors reads them (default: measured ones, docs/fuzzing.md)"},
    OptionSpec{"--subnormals", "", "use subnormal numbers, too"},
    OptionSpec{"--seed", "N", "seed of everything random (default 0)"},
    OptionSpec{"--islands", "N", "independent parts of the search, 1 to 1024 (default 8)"},
    OptionSpec{
        "--state", "FILE",
        "go on with the search that FILE holds, where it is there, and store the search in it"},
    OptionSpec{"--corpus", "DIR",
               "write the case that is found to DIR/TARGET-DIGEST.case; property: violating runs"},
    OptionSpec{"--plant", "NAME",
               "property: a defect (docs/plants.md) that is built into every decoder, to see it "
               "found"},
    OptionSpec{"--no-shrink", "", "flip: leave the case that is found as it is"},
    OptionSpec{"--floor", "R",
               "shrink: what the case claims (of a flip: margin divided by bound) stays at least R "
               "(default: a quarter)"},
    OptionSpec{"--out", "FILE", "shrink: write the smaller case to FILE"},
    OptionSpec{"--svg", "FILE", "blame: draw the roundings, those that decide in red"},
    OptionSpec{"--threads", "N",
               "threads, 1 to 1024 (default: one for each CPU); never changes a result"},
};

Result<Answer> run_flip(const ParsedOptions& options) {
  const auto request = flip_request(options);
  if (!request) return request.error();
  const auto scorer = fuzz::FlipScorer::make(request->shape);
  if (!scorer) return scorer.error();
  const SearchLimits& limits = request->limits;
  fuzz::FlipSearch search(*scorer, {.seed = limits.seed,
                                    .islands = limits.islands,
                                    .threads = limits.threads,
                                    .ranges = request->ranges});
  const Result<bool> done =
      run_search(limits, options,
                 {.read_state = [&](std::string_view text) { return search.read_state(text); },
                  .state_text = [&] { return search.state_text(); },
                  .run = [&](std::int64_t total,
                             const std::function<bool(std::int64_t)>& go_on) -> Result<bool> {
                    search.run(total, go_on);
                    return true;
                  }});
  if (!done) return done.error();
  const auto found = search.confirmed();
  FlipFollowUp after;
  if (found) {
    auto made = follow_up(limits, options, found->find.scored.flip_case);
    if (!made) return made.error();
    after = *std::move(made);
  }
  Answer answer;
  answer.report = flip_report(*request, *scorer, search, found, after);
  if (found && found->claim.value > fuzz::objective(request->shape.target).largest_value) {
    answer.exit_code = ExitCode::check_failed;
    answer.complaint = "a bound on rounding errors does not hold";
  }
  return answer;
}

Result<Answer> run_replay(const ParsedOptions& options) {
  if (options.positionals().size() != 2) {
    return Error{ErrorKind::usage, "fuzz replay: one case file is needed: kvsim fuzz replay FILE"};
  }
  const std::string& path = options.positionals()[1];
  const auto text = read_text(path);
  if (!text) return text.error();
  if (text->starts_with(fuzz::property_case_line)) return replay_property(path, *text);
  if (fuzz::is_model_case(*text)) return replay_model(options, path, *text);
  const auto flip_case = fuzz::parse_case(*text);
  if (!flip_case) return in_file(path, flip_case.error());
  const auto scorer = fuzz::FlipScorer::make(flip_case->shape);
  if (!scorer) return in_file(path, scorer.error());
  const auto confirmation = fuzz::confirm(*scorer, *flip_case);
  if (!confirmation) return in_file(path, confirmation.error());
  Answer answer;
  const fuzz::FlipScore score = scorer->score(*flip_case);
  const fuzz::Claim claim =
      fuzz::objective(flip_case->shape.target).confirmed_claim(*flip_case, score, *confirmation);
  answer.report = replay_report(path, *scorer, score, *confirmation, claim);
  if (claim.holds()) {
    answer.exit_code = ExitCode::check_failed;
    answer.complaint =
        fmt::format("what the case claims is there: {}", to_string(flip_case->shape.target));
  }
  return answer;
}

Result<Answer> run_fuzz(const ParsedOptions& options) {
  constexpr std::array<std::string_view, 5> actions{"flip", "replay", "shrink", "blame",
                                                    "property"};
  if (options.positionals().empty()) {
    return Error{ErrorKind::usage,
                 "fuzz: flip, replay, shrink, blame or property is needed (kvsim fuzz --help)"};
  }
  const std::string& action = options.positionals().front();
  if (action == "replay") return run_replay(options);
  if (action == "shrink") return run_shrink(options);
  if (action == "blame") return run_blame(options);
  if (action == "property") return run_fuzz_property(options);
  if (action != "flip") return unknown_word("fuzz", action, actions);
  if (options.has("--plant")) {
    return Error{ErrorKind::usage, "--plant is of fuzz property: flip searches undamaged kernels"};
  }
  if (options.positionals().size() > 1) {
    return Error{ErrorKind::usage, fmt::format("{} is given; fuzz flip takes options only",
                                               in_quotes(options.positionals()[1]))};
  }
  return options.has("--model") ? run_model_flip(options) : run_flip(options);
}

/// The options of both kinds of search as one list.
std::span<const OptionSpec> all_options() {
  static const std::vector<OptionSpec> rows = [] {
    std::vector<OptionSpec> all(fuzz_options.begin(), fuzz_options.end());
    const auto of_models = model_flip_options();
    all.insert(all.end(), of_models.begin(), of_models.end());
    return all;
  }();
  return rows;
}

}  // namespace

const Command fuzz_command{
    .name = "fuzz",
    .summary = "inputs on which two kernels choose different tokens, and checks of what must hold",
    .synopsis =
        "flip [OPTIONS] | shrink FILE | blame FILE | property NAME|all|list [OPTIONS] | "
        "replay FILE",
    .description =
        "flip: searches for numbers (q, K, V and the rows of two tokens of the output matrix) on "
        "which\n"
        "two kernels, or two orders of one sum, make different tokens win although the exact "
        "logits "
        "are\n"
        "as far apart as possible. Numbers stay within the magnitudes of a real model. What is "
        "found "
        "is\n"
        "confirmed with MPFR (256 bits, directed rounding) and compared with rigorous bounds on "
        "rounding\n"
        "errors and with plain random search. Equal seeds and runs give equal finds.\n"
        "property: checks what must hold for every input on random ones (docs/properties.md): one\n"
        "property, or all of them; takes --runs, --time, --seed, --corpus and --plant. Exits with "
        "1\n"
        "where a property is violated. list: their names and what they say.\n"
        "replay: computes a case of either again; exits with 1 where what it claims, or the "
        "violation,\n"
        "is there, with 0 where it is not.\n"
        "shrink: makes a case smaller: fewer keys, elements, heads, significant bits and splits; "
        "of a\n"
        "model: fewer tokens. flip does it at the end, but not with --model. blame: tells which\n"
        "roundings decide a flip: those that undo it if their errors are taken away.",
    .options = all_options(),
    .examples =
        "  kvsim fuzz flip --terms 64 --accumulate fp16 --on sequential --off pairwise\n"
        "  kvsim fuzz flip --device a100 --head-dim 64 --on-splits 4 --runs 1000 --corpus found",
    .run = run_fuzz,
};

}  // namespace kvsim
