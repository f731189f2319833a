// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "softfloat/format.h"
#include "softfloat/result.h"

/// Real back ends: libraries and devices that compute operators on tensors.
namespace kvsim::gpu {

/// Numbers of one format, row-major.
struct Tensor {
  softfloat::Format format = {};
  std::vector<std::int64_t> shape = {};  ///< empty: one number
  std::vector<float> values = {};        ///< numbers of `format`; a NaN is any NaN
  /// Bytes by which the back end's copy begins behind a multiple of 64: 0 … 63, a multiple of the
  /// size of an element. Ignored by back ends whose answer cannot depend on it.
  std::int64_t misalignment = 0;
};

/// One operator on tensors. gpu/operators.h lists the names with the shapes they take.
struct OperatorCall {
  std::string operation = {};
  std::vector<Tensor> inputs = {};
  /// What else decides: "causal" (0 or 1), "scale", "eps", "backend" (of sdpa) …
  std::map<std::string, std::string> attributes = {};
};

/// What a back end offers of one operator.
struct OperatorSupport {
  std::string operation;
  std::vector<std::string> formats;  ///< canonical names of the formats of inputs and result
  std::string note;                  ///< attributes it takes, limits; may be empty
};

/// What a back end's bits may hang on: versions, CPU or device, threads, settings. Names are those
/// of fingerprint_names where they mean the same.
struct Fingerprint {
  std::vector<std::pair<std::string, std::string>> entries;

  /// The value of an entry; empty if there is none.
  [[nodiscard]] std::string_view value(std::string_view name) const;
  /// What two machines must share for their orders to be expected equal: the entries of
  /// fingerprint_names::in_key that are there, as "name=value" joined by "; ".
  [[nodiscard]] std::string key() const;

  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
};

namespace fingerprint_names {
inline constexpr std::string_view backend = "backend";
inline constexpr std::string_view version = "version";
inline constexpr std::string_view cpu_vendor = "cpu-vendor";
inline constexpr std::string_view cpu_model = "cpu-model";
inline constexpr std::string_view cpu_features = "cpu-features";
inline constexpr std::string_view device = "device";
inline constexpr std::string_view core = "core";  ///< what a library takes the CPU for
inline constexpr std::string_view threads = "threads";
inline constexpr std::string_view setting = "setting";
/// The part of a fingerprint that decides which kernels are chosen, in this order.
inline constexpr std::string_view in_key[] = {backend,      version, cpu_vendor, core,
                                              cpu_features, device,  setting};
}  // namespace fingerprint_names

/// One back end. Not shared between threads. It begins with one thread of its own.
class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  /// As make_backend() takes it.
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual Fingerprint fingerprint() const = 0;
  [[nodiscard]] virtual std::vector<OperatorSupport> operators() const = 0;
  /// Computes one operator; the result has the format of the first input unless the operator's note
  /// says otherwise. Errors: (unavailable) an operator or a format that the back end does not
  /// offer; (usage) shapes, numbers or attributes that the operator does not take; (file) a failure
  /// inside the library.
  [[nodiscard]] virtual Result<Tensor> run(const OperatorCall& call) = 0;
  /// How many threads the back end may use from now on; n ≥ 1. Holds true, or (unavailable) where
  /// it cannot be set.
  [[nodiscard]] virtual Result<bool> set_threads(std::int64_t n) = 0;
};

/// One row of the table of back ends.
struct BackendRow {
  std::string_view name;      ///< "openblas"
  std::string_view argument;  ///< what may follow a colon, "PATH"; empty: nothing
  bool argument_required = false;
  std::string_view description;  ///< one line without a full stop
  Result<std::unique_ptr<Backend>> (*make)(std::string_view argument);
};

/// Every back end, in the order in which they are listed to the user.
[[nodiscard]] std::span<const BackendRow> backend_rows();

/// The back end of that name: "NAME" or "NAME:ARGUMENT". Errors: (usage) a name that no row has;
/// (unavailable) a library that is missing, with how to get it.
[[nodiscard]] Result<std::unique_ptr<Backend>> make_backend(std::string_view name);

}  // namespace kvsim::gpu
