// Hash functions of vectors whose collisions tell how near two vectors are (GENIE, section 5), and the signatures that
// they give to vectors: a row is the list of its hash values, one a function, and a match count is the number of
// functions that collide.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "methods/method.h"

namespace pgwarp::matchcount
{

// Values are stored with indexes: never renumber.
enum class HashFamily : std::uint8_t {
    stable,   // floor((a.x + b) / w), a of a p-stable distribution: normal under L2, Cauchy under L1 (equation 8)
    binning,  // random binning under L1: cells of a grid, whose pitches are Gamma(2, width), re-hashed (appendix G)
    signs,    // the sign of a.x, a normal, under cosine
};

// The form of an index's functions.
struct HashForm {
    HashFamily family = HashFamily::stable;
    Metric metric = Metric::l2;
    std::size_t functions = 0;
    std::size_t buckets = 67;  // values of a function; at most most_buckets

    static constexpr std::size_t most_buckets = 255;
};

// The array of their parameters.
inline constexpr char array_hashes[] = "hashes";

class VectorHashes
{
public:
    VectorHashes(const HashForm& form, std::size_t dimensions);

    // Draws the functions. `width`: w of equation 8, or the width sigma of the kernel exp(-L1 / sigma).
    void draw(float width, std::uint64_t seed);
    // Their parameters, as an array of the index: a and b over w; or 1 / pitch and shift; or a.
    ArrayShape shape() const;
    std::span<float> parameters() { return std::span(parameters_).first(shape().rows * shape().width); }
    std::span<const float> parameters() const { return std::span(parameters_).first(shape().rows * shape().width); }

    const HashForm& form() const { return form_; }
    std::size_t dimensions() const { return dimensions_; }
    // A signature: a byte a function, less than 255; or a bit, in whole words of 32.
    std::size_t signature_bytes() const;
    // Writes the signature of a vector, the same on every device. Thread-safe.
    void sign(const float* vector, std::uint8_t* out) const;
    // The same for vectors [count][dimensions].
    void sign(std::span<const float> vectors, std::uint8_t* out, ThreadPool& pool, const CancelToken* cancel) const;
    // out[i] = number of functions that collide on row i and the query; rows [count][signature_bytes()].
    void count_matches(const std::uint8_t* query, const std::uint8_t* rows, std::size_t count,
                       std::uint16_t* out) const;

private:
    void draw_stable(float width, std::uint64_t seed);
    void draw_binning(float width, std::uint64_t seed);
    std::size_t grid_size() const { return dimensions_ * form_.functions; }

    HashForm form_;
    std::size_t dimensions_;
    std::vector<float> parameters_;
};

}  // namespace pgwarp::matchcount
