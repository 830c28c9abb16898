// Training, encoding and decoding, a part of the vector at a time.
#include "numeric/product_quantizer.h"

#include <algorithm>
#include <stdexcept>

#include "numeric/kmeans.h"
#include "numeric/nearest.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t training_iterations = 5;

}  // namespace

ProductQuantizer::ProductQuantizer(std::size_t dimensions, std::size_t subquantizers)
    : dimensions_(dimensions), subquantizers_(subquantizers), codebooks_(codewords * dimensions, 0.0F)
{
    if (subquantizers < 1 || subquantizers > dimensions) throw std::invalid_argument("subquantizers out of range");
}

// If the width does not divide evenly, the first parts are wider by one.
std::size_t ProductQuantizer::part_begin(std::size_t part) const
{
    const std::size_t width = dimensions_ / subquantizers_;
    return part * width + std::min(part, dimensions_ % subquantizers_);
}

void ProductQuantizer::train(std::span<const float> rows, std::uint64_t seed, ThreadPool& pool,
                             const CancelToken* cancel)
{
    const std::size_t count = rows.size() / dimensions_;
    if (count == 0) return;
    pool.parallel_for(subquantizers_, 1, [&](std::size_t first, std::size_t last) {
        ThreadPool alone(1);
        for (std::size_t part = first; part < last; ++part) {
            const std::size_t begin = part_begin(part);
            const std::size_t width = part_begin(part + 1) - begin;
            std::vector<float> values(count * width);
            for (std::size_t i = 0; i < count; ++i)
                std::copy_n(rows.data() + i * dimensions_ + begin, width, values.data() + i * width);
            KMeansOptions options;
            options.clusters = codewords;
            options.iterations = training_iterations;
            options.seed = seed + part;
            options.cancel = cancel;
            const std::vector<float> trained = train_kmeans(values, width, options, alone);
            std::copy(trained.begin(), trained.end(),
                      codebooks_.begin() + static_cast<std::ptrdiff_t>(begin * codewords));
        }
    });
}

void ProductQuantizer::encode(const float* row, std::uint8_t* code) const
{
    for (std::size_t part = 0; part < subquantizers_; ++part) {
        const std::size_t begin = part_begin(part);
        const std::size_t width = part_begin(part + 1) - begin;
        const PackedCentroids packed({codebook(part), codewords * width}, width);
        std::uint32_t index = 0;
        find_nearest(packed, row + begin, 1, dimensions_, &index);
        code[part] = static_cast<std::uint8_t>(index);
    }
}

void ProductQuantizer::encode_rows(std::span<const float> rows, std::span<std::uint8_t> codes, ThreadPool& pool) const
{
    const std::size_t count = rows.size() / dimensions_;
    std::vector<PackedCentroids> packed;
    packed.reserve(subquantizers_);
    for (std::size_t part = 0; part < subquantizers_; ++part) {
        const std::size_t width = part_begin(part + 1) - part_begin(part);
        packed.emplace_back(std::span(codebook(part), codewords * width), width);
    }
    pool.parallel_for(count, 240, [&](std::size_t first, std::size_t last) {
        std::vector<std::uint32_t> index(last - first);
        for (std::size_t part = 0; part < subquantizers_; ++part) {
            find_nearest(packed[part], rows.data() + first * dimensions_ + part_begin(part), last - first, dimensions_,
                         index.data());
            for (std::size_t i = first; i < last; ++i)
                codes[i * subquantizers_ + part] = static_cast<std::uint8_t>(index[i - first]);
        }
    });
}

void ProductQuantizer::decode(const std::uint8_t* code, float* row) const
{
    for (std::size_t part = 0; part < subquantizers_; ++part) {
        const std::size_t begin = part_begin(part);
        const std::size_t width = part_begin(part + 1) - begin;
        std::copy_n(codebook(part) + code[part] * width, width, row + begin);
    }
}

}  // namespace pgwarp
