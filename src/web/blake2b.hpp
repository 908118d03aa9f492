// BLAKE2b (RFC 7693) without a key: the checksum of model files, which Python takes from its standard library.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>

namespace gristmill::web {

class Blake2b {
  public:
    explicit Blake2b(std::size_t digest_bytes) : state_(kStart) { state_[0] ^= 0x01010000u ^ digest_bytes; }

    void update(std::span<const std::uint8_t> bytes) {
        while (!bytes.empty()) {
            if (filled_ == block_.size()) {  // a full block is compressed once it is known not to be the last
                count_ += filled_;
                compress(false);
                filled_ = 0;
            }
            const std::size_t n = std::min(bytes.size(), block_.size() - filled_);
            std::memcpy(block_.data() + filled_, bytes.data(), n);
            filled_ += n;
            bytes = bytes.subspan(n);
        }
    }
    void finish(std::span<std::uint8_t> digest) {
        count_ += filled_;
        std::fill(block_.begin() + static_cast<std::ptrdiff_t>(filled_), block_.end(), std::uint8_t{0});
        compress(true);
        std::memcpy(digest.data(), state_.data(), digest.size());  // WebAssembly is little-endian
    }

  private:
    using Words = std::array<std::uint64_t, 16>;
    static constexpr std::array<std::uint64_t, 8> kStart = {
        0x6a09e667f3bcc908u, 0xbb67ae8584caa73bu, 0x3c6ef372fe94f82bu, 0xa54ff53a5f1d36f1u,
        0x510e527fade682d1u, 0x9b05688c2b3e6c1fu, 0x1f83d9abfb41bd6bu, 0x5be0cd19137e2179u};
    static constexpr std::uint8_t kOrder[10][16] = {
        {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
        {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
        {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
        {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
        {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};

    static void mix(Words& v, int a, int b, int c, int d, std::uint64_t x, std::uint64_t y) {
        v[a] += v[b] + x, v[d] = std::rotr(v[d] ^ v[a], 32);
        v[c] += v[d], v[b] = std::rotr(v[b] ^ v[c], 24);
        v[a] += v[b] + y, v[d] = std::rotr(v[d] ^ v[a], 16);
        v[c] += v[d], v[b] = std::rotr(v[b] ^ v[c], 63);
    }
    void compress(bool last) {
        Words m, v;
        std::memcpy(m.data(), block_.data(), block_.size());
        std::copy(state_.begin(), state_.end(), v.begin());
        std::copy(kStart.begin(), kStart.end(), v.begin() + 8);
        v[12] ^= count_;
        if (last) v[14] = ~v[14];
        for (int round = 0; round < 12; ++round) {
            const std::uint8_t* s = kOrder[round % 10];
            for (int i = 0; i < 4; ++i) mix(v, i, 4 + i, 8 + i, 12 + i, m[s[2 * i]], m[s[2 * i + 1]]);
            for (int i = 0; i < 4; ++i)
                mix(v, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4, m[s[8 + 2 * i]], m[s[9 + 2 * i]]);
        }
        for (int i = 0; i < 8; ++i) state_[i] ^= v[i] ^ v[i + 8];
    }

    std::array<std::uint64_t, 8> state_;
    std::array<std::uint8_t, 128> block_ = {};
    std::size_t filled_ = 0;
    std::uint64_t count_ = 0;
};

}  // namespace gristmill::web
