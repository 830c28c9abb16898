// Draws hash functions of vectors and applies them. Values are computed in double precision in the order of canonical
// distances, or in single precision without fused operations, so that every processor signs a vector the same.
#include "methods/matchcount/vector_hashes.h"

#include <cmath>
#include <numbers>

#include "methods/matchcount/signature_kernels.h"
#include "numeric/bits.h"
#include "numeric/hash.h"

namespace pgwarp::matchcount
{

namespace
{

constexpr std::size_t counted_at_once = 512;  // rows

// Numbers by a hash of their place, so that the same seed gives the same functions.
class Draw
{
public:
    explicit Draw(std::uint64_t seed) : start_(mix_hash(seed)) {}

    // Uniform in (0, 1).
    double uniform() { return (static_cast<double>(mix_hash(start_ + ++drawn_) >> 11) + 0.5) * 0x1p-53; }
    // Box and Muller.
    double normal()
    {
        const double length = std::sqrt(-2 * std::log(uniform()));
        return length * std::cos(2 * std::numbers::pi * uniform());
    }
    double cauchy() { return std::tan(std::numbers::pi * (uniform() - 0.5)); }
    // Of shape 2 and scale 1: the sum of two exponential numbers.
    double gamma2() { return -std::log(uniform() * uniform()); }

private:
    std::uint64_t start_;  // far from that of other seeds
    std::uint64_t drawn_ = 0;
};

// value modulo buckets, not negative. Values that are whole buckets apart are far from each other.
std::uint8_t bucket_of(double value, std::size_t buckets)
{
    const auto most = static_cast<double>(buckets);
    const double rest = value - most * std::floor(value / most);
    return static_cast<std::uint8_t>(std::clamp(rest, 0.0, most - 1));
}

}  // namespace

VectorHashes::VectorHashes(const HashForm& form, std::size_t dimensions)
    : form_(form), dimensions_(dimensions), parameters_(shape().rows * shape().width + kernel_padding)
{
}

ArrayShape VectorHashes::shape() const
{
    switch (form_.family) {
        case HashFamily::stable:
            return make_array_shape(array_hashes, ArrayType::f32, form_.functions, dimensions_ + 1);
        case HashFamily::binning:
            return make_array_shape(array_hashes, ArrayType::f32, 2 * dimensions_, form_.functions);
        case HashFamily::signs:
            break;
    }
    return make_array_shape(array_hashes, ArrayType::f32, form_.functions, dimensions_);
}

void VectorHashes::draw(float width, std::uint64_t seed)
{
    switch (form_.family) {
        case HashFamily::stable:
            return draw_stable(width, seed);
        case HashFamily::binning:
            return draw_binning(width, seed);
        case HashFamily::signs:
            break;
    }
    Draw draw(seed);
    for (float& value : parameters()) value = static_cast<float>(draw.normal());
}

void VectorHashes::draw_stable(float width, std::uint64_t seed)
{
    Draw draw(seed);
    float* at = parameters_.data();
    for (std::size_t f = 0; f < form_.functions; ++f) {
        for (std::size_t d = 0; d < dimensions_; ++d)
            *at++ = static_cast<float>((form_.metric == Metric::l1 ? draw.cauchy() : draw.normal()) / width);
        *at++ = static_cast<float>(draw.uniform());
    }
}

void VectorHashes::draw_binning(float width, std::uint64_t seed)
{
    Draw draw(seed);
    for (std::size_t i = 0; i < grid_size(); ++i) {
        parameters_[i] = static_cast<float>(1 / (width * draw.gamma2()));
        parameters_[grid_size() + i] = static_cast<float>(draw.uniform());
    }
}

std::size_t VectorHashes::signature_bytes() const
{
    return form_.family == HashFamily::signs ? 4 * words_of_bits(form_.functions) : form_.functions;
}

void VectorHashes::sign(const float* vector, std::uint8_t* out) const
{
    const float* at = parameters_.data();
    if (form_.family == HashFamily::stable) {
        for (std::size_t f = 0; f < form_.functions; ++f, at += dimensions_ + 1)
            out[f] = bucket_of(std::floor(canonical_dot(at, vector, dimensions_) + at[dimensions_]), form_.buckets);
        return;
    }
    if (form_.family == HashFamily::signs) {
        std::fill_n(out, signature_bytes(), std::uint8_t{0});
        for (std::size_t f = 0; f < form_.functions; ++f, at += dimensions_)
            out[f / 8] |= static_cast<std::uint8_t>((canonical_dot(at, vector, dimensions_) >= 0) << f % 8);
        return;
    }
    thread_local std::vector<std::uint32_t> hashes;
    hashes.resize(form_.functions + kernel_padding);
    bin_row(vector, at, at + grid_size(), dimensions_, form_.functions, hashes.data());
    for (std::size_t f = 0; f < form_.functions; ++f)
        out[f] = static_cast<std::uint8_t>(std::uint64_t{hashes[f]} * form_.buckets >> 32);
}

void VectorHashes::sign(std::span<const float> vectors, std::uint8_t* out, ThreadPool& pool,
                        const CancelToken* cancel) const
{
    pool.parallel_for(vectors.size() / dimensions_, 256, [&](std::size_t begin, std::size_t end) {
        if (cancel != nullptr) cancel->check();
        for (std::size_t i = begin; i < end; ++i) sign(vectors.data() + i * dimensions_, out + i * signature_bytes());
    });
}

void VectorHashes::count_matches(const std::uint8_t* query, const std::uint8_t* rows, std::size_t count,
                                 std::uint16_t* out) const
{
    const std::size_t bytes = signature_bytes();
    if (form_.family != HashFamily::signs) return count_equal_bytes(query, rows, count, bytes, out);
    // Rows of bits take the place of floats.
    const auto* bits = reinterpret_cast<const float*>(query);
    double differing[counted_at_once];
    for (std::size_t begin = 0; begin < count; begin += counted_at_once) {
        const std::size_t some = std::min(counted_at_once, count - begin);
        bit_distances(Metric::hamming, bits, reinterpret_cast<const float*>(rows + begin * bytes), some, bytes / 4,
                      differing);
        for (std::size_t i = 0; i < some; ++i)
            out[begin + i] = static_cast<std::uint16_t>(static_cast<double>(form_.functions) - differing[i]);
    }
}

}  // namespace pgwarp::matchcount
