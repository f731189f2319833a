// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <array>

/// Constants of sim/elementary_double.cc. tests/sim/elementary_test.cc recomputes them with MPFR or
/// measures what follows from them.
namespace kvsim::elementary {

inline constexpr double log2_e = 0x1.71547652b82fep+0;
inline constexpr double ln_2 = 0x1.62e42fefa39efp-1;

/// (2^f − 1)/f on |f| ≤ 1/2: the polynomial that equals it at nine Chebyshev nodes, lowest power
/// first. 1 + f·p(f) differs from 2^f by at most 2^−44.6 of it.
inline constexpr std::array<double, 9> exp2_polynomial = {
    0x1.62e42fefa39efp-1,  0x1.ebfbdff823cedp-3,  0x1.c6b08d7047e52p-5,
    0x1.3b2ab7181b755p-7,  0x1.5d87fe86fe88ep-10, 0x1.4308ac85aa947p-13,
    0x1.ffcb9515a8016p-17, 0x1.63d136366db24p-20, 0x1.b63880a30e9ffp-24,
};

/// 1/n! for n = 2 … 15: exp(u) − 1 = u + u²/2 + …
inline constexpr std::array<double, 14> inverse_factorials = {0x1p-1,
                                                              0x1.5555555555555p-3,
                                                              0x1.5555555555555p-5,
                                                              0x1.1111111111111p-7,
                                                              0x1.6c16c16c16c17p-10,
                                                              0x1.a01a01a01a01ap-13,
                                                              0x1.a01a01a01a01ap-16,
                                                              0x1.71de3a556c734p-19,
                                                              0x1.27e4fb7789f5cp-22,
                                                              0x1.ae64567f544e4p-26,
                                                              0x1.1eed8eff8d898p-29,
                                                              0x1.6124613a86d09p-33,
                                                              0x1.93974a8c07c9dp-37,
                                                              0x1.ae7f3e733b81fp-41};

/// Coefficients of x^(2n+1) in erf x: 2/√π · (−1)^n / (n! (2n + 1)).
inline constexpr std::array<double, 13> erf_series = {
    0x1.20dd750429b6dp+0,  -0x1.812746b0379e7p-2,  0x1.ce2f21a042be2p-4,  -0x1.b82ce31288b51p-6,
    0x1.565bcd0e6a53fp-8,  -0x1.c02db40040b86p-11, 0x1.f9a326f9b89b7p-14, -0x1.f4d25c3e0c2ebp-17,
    0x1.b9e6c9dc651a3p-20, -0x1.5f742ec43e71ap-23, 0x1.fcc5720624c1cp-27, -0x1.51d7181c5d36dp-30,
    0x1.9e6ad5e55a73p-34};

/// Taylor coefficients of erf at 5/8, 7/8, …, 31/8, lowest power first: within 1/8 of its centre
/// each polynomial has a relative error below 2^−51.
inline constexpr std::array<std::array<double, 13>, 14> erf_taylor = {{
    {0x1.3f196dcd0f135p-1, 0x1.86e9694134b9ep-1, -0x1.e8a3c39181e85p-2, -0x1.c8105021682e3p-5,
     0x1.6963c8a39d692p-3, -0x1.c1242dfffc503p-6, -0x1.52b2668e8627dp-5, 0x1.c7cd9c1ca7367p-7,
     0x1.b62f4a7484034p-8, -0x1.dc3b46fdc32b4p-9, -0x1.81148d81da2abp-11, 0x1.63796d17c397ep-11,
     0x1.55121d5901343p-15},
    {0x1.91724951b8fc6p-1, 0x1.0cab61f084b93p-1, -0x1.d62beb64e8441p-2, 0x1.7c9d756a115bbp-4,
     0x1.cc60567d78c2bp-4, -0x1.1350f4b222ac7p-4, -0x1.53bb4a5af4fbep-7, 0x1.30ac21937fa54p-6,
     -0x1.e3f4d17a9ac97p-10, -0x1.aae22e15f782dp-9, 0x1.d6e44e4c09455p-11, 0x1.9900077d94d8ap-12,
     -0x1.94ae412712f8bp-13},
    {0x1.c6dad2829ec62p-1, 0x1.45e99bcbb7915p-2, -0x1.6ea6cf452e838p-2, 0x1.4cb3cf0aa0b9bp-3,
     0x1.ca5083167a246p-6, -0x1.f65d15f1cf8d7p-5, 0x1.fd1c6c11eda72p-7, 0x1.3acc78420e9d3p-7,
     -0x1.8b43c43f205b7p-8, -0x1.79b04d104b47ap-12, 0x1.2e527649b7b04p-10, -0x1.731a0a163486bp-13,
     -0x1.28de96372169p-13},
    {0x1.e5768c3b4a3fcp-1, 0x1.5ce595c455b0ap-3, -0x1.dfbbadedf5d2ep-3, 0x1.4374d82e04c67p-3,
     -0x1.f3b8d52d35665p-6, -0x1.f572c4c8c7b0cp-6, 0x1.6b16f52c58b2bp-6, -0x1.73ffa9b859606p-10,
     -0x1.1740474706a1cp-8, 0x1.9da3d48ffd0a3p-10, 0x1.534f6c4dc679bp-12, -0x1.6392df39d614dp-12,
     0x1.e13333b2abeefp-16},
    {0x1.f4f693b67bd77p-1, 0x1.499d478bca735p-4, -0x1.0bcfca21947dbp-3, 0x1.d6631e1a28e9ep-4,
     -0x1.974c03686729dp-5, -0x1.17d430bd57df4p-9, 0x1.d857f2c4bc9b6p-7, -0x1.954ab0f57a01ep-8,
     -0x1.2e43eef270fc5p-11, 0x1.71cd78555df62p-10, -0x1.75457224274f8p-12, -0x1.07892ddcb78e9p-13,
     0x1.70f93e04bd30dp-14},
    {0x1.fbe61eef4cf6ap-1, 0x1.12ceb37ff9bc3p-5, -0x1.01a1c847fa207p-4, 0x1.143d1c6f4f093p-4,
     -0x1.5a316520b81bap-5, 0x1.779b1e57043ccp-7, 0x1.0d099c7b29ddep-8, -0x1.42fcbaa85e8aap-8,
     0x1.76ff57db443cap-10, 0x1.7bda79657b833p-12, -0x1.991c209f22659p-12, 0x1.353eeafcf9fccp-14,
     0x1.2e9cb5a4b81e1p-15},
    {0x1.fea4218d6594ap-1, 0x1.94624e78e0fafp-7, -0x1.ada873606f0aap-6, 0x1.0ea475da3be7fp-5,
     -0x1.afe553fa44f4p-6, 0x1.9973b489fa221p-7, -0x1.dd78ee1541166p-10, -0x1.ea03bb2493671p-10,
     0x1.6aa2c0b920d39p-10, -0x1.2fdb2fcf76069p-12, -0x1.01788a2adcda8p-13, 0x1.8dd7aaa44262bp-14,
     -0x1.f70c69dddafe1p-17},
    {0x1.ff9960f3eb327p-1, 0x1.06918b6355624p-8, -0x1.37ccd585f564bp-7, 0x1.c1ec102e364f1p-7,
     -0x1.ae59615f8eb1ap-7, 0x1.11dae47350ddep-7, -0x1.982b274b81788p-9, 0x1.0283e0b81b24ap-13,
     0x1.377c452e88a9p-11, -0x1.61ec70a692e42p-12, 0x1.cae81a7d269ecp-15, 0x1.092767732524fp-15,
     -0x1.5cf9e49762523p-16},
    {0x1.ffe514bbdc197p-1, 0x1.2ce898809244ep-10, -0x1.8af14828bffa7p-9, 0x1.407fbd18f1201p-8,
     -0x1.62d4c6d49c7bp-8, 0x1.146c4b3e28c45p-8, -0x1.267f3bc3eb5a4p-9, 0x1.64f891b0c9bd5p-11,
     0x1.229ef0be9e918p-15, -0x1.4006bb88db24fp-13, 0x1.3631d47d55298p-14, -0x1.5a7e166eeb7a4p-17,
     -0x1.c0ce5a29eef4cp-18},
    {0x1.fff9ba420e834p-1, 0x1.30538fbb77ecdp-12, -0x1.b5781e9d7c647p-11, 0x1.89e17c074d373p-10,
     -0x1.ed4ac7daea43ep-10, 0x1.c11f27065ca3fp-10, -0x1.2add1ce773e8ep-10, 0x1.151f7854a4982p-11,
     -0x1.1c63ff4200387p-13, -0x1.0ec4b7a0e2922p-16, 0x1.1814499946fc1p-15, -0x1.f1014fd3fb252p-17,
     0x1.119cf80980e9dp-19},
    {0x1.fffeb3ebb267bp-1, 0x1.0f9e1b4dd36dfp-14, -0x1.a8670aa99a5bcp-13, 0x1.a3737e2a2f2bcp-12,
     -0x1.24544f02d2a7ep-11, 0x1.2e7e763d3371bp-11, -0x1.da496e53546cfp-12, 0x1.176cf6641d8cap-12,
     -0x1.d2ac6c8cdd1ebp-14, 0x1.aafdbd335f9fcp-16, 0x1.03f2f284de14cp-18, -0x1.ab2ef5582c7b5p-18,
     0x1.6e35d70bd3c3ep-19},
    {0x1.ffffc316d9edp-1, 0x1.abe09e9144b5ep-17, -0x1.690585ca91f98p-15, 0x1.84522fe8815bcp-14,
     -0x1.298f8d45f650ap-13, 0x1.577577885f858p-13, -0x1.330aab77d471cp-13, 0x1.ac9997dd049bcp-14,
     -0x1.cc1578b9af656p-15, 0x1.64c530bff5499p-16, -0x1.34f0301aa55b8p-18, -0x1.5f92b1610bdc3p-21,
     0x1.1e1d7e12793fdp-20},
    {0x1.fffff618c3da6p-1, 0x1.296a70f414053p-19, -0x1.0d88765d3224bp-17, 0x1.394b1fa67116dp-16,
     -0x1.05760ad1bcf9ap-15, 0x1.4c1fe48a5aa68p-15, -0x1.4b98203383ad1p-15, 0x1.085c0f8220827p-15,
     -0x1.510a3c05c70ffp-16, 0x1.516554a419344p-17, -0x1.f31a25c84a6cfp-19, 0x1.b0737cb186e0ep-21,
     0x1.49b56fe56c743p-24},
    {0x1.fffffe92ced93p-1, 0x1.6ce1aa3fd7bddp-22, -0x1.617a9cedd8ffep-20, 0x1.b95fa39b39f7fp-19,
     -0x1.8e1fc41538bd9p-18, 0x1.137172180139ep-17, -0x1.2eb290b1828d4p-17, 0x1.0d8c35cb01026p-17,
     -0x1.88856a366325dp-18, 0x1.d25c45f8a9f83p-19, -0x1.bbbb8753a480dp-20, 0x1.40016003f88c1p-21,
     -0x1.20d2ab47c8421p-23},
}};

/// π/2 in three parts: 31 and 31 bits, whose products with an integer below 2^22 are exact, and the
/// rest.
inline constexpr double half_pi_high = 0x1.921fb544p+0;
inline constexpr double half_pi_middle = 0x1.0b4611a8p-34;
inline constexpr double half_pi_low = -0x1.d9cceba3f91f2p-66;
inline constexpr double two_over_pi = 0x1.45f306dc9c883p-1;

}  // namespace kvsim::elementary
