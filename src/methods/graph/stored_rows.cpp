// Stored rows of a graph: floats and halves, both searched as bytes where these serve, and bits of projections.
#include "methods/graph/stored_rows.h"

#include <bit>
#include <cmath>

#include "methods/arrays.h"
#include "methods/bounds.h"
#include "methods/description.h"
#include "methods/graph/kept_array.h"
#include "methods/rows/half_rows.h"
#include "numeric/distance.h"

namespace pgwarp
{

namespace
{

class FullRows : public StoredRows
{
public:
    FullRows(Metric metric, std::size_t dimensions, std::size_t rows)
        : metric_(metric), dimensions_(dimensions), rows_(rows)
    {
    }
    bool write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes) override
    {
        if (array != array_vectors) return false;
        write_piece(kept_.room(rows_ * dimensions_), offset, bytes);
        return true;
    }
    void lend(std::span<const float> vectors) override { kept_.borrow(vectors); }
    void finish_load() override { vectors_ = kept_.all(rows_ * dimensions_).data(); }
    void prepare_searches(std::span<const std::uint32_t> seeds, EdgeView edges, ThreadPool& pool) override
    {
        const auto copy = [this](std::uint32_t row, float* out) {
            std::copy_n(vectors_ + std::size_t{row} * dimensions_, dimensions_, out);
        };
        bytes_.build(metric_, dimensions_, seeds, edges, copy, pool);
    }
    std::uint64_t memory_bytes() const override { return kept_.memory_bytes() + bytes_.memory_bytes(); }
    ResultKind result_kind() const override { return promise_of_vectors(metric_ == Metric::cosine).kind; }
    double bound_width(const float*) const override { return pgwarp::bound_width(metric_, 0, 1); }
    void prepare(const float* query, GraphQuery& out) const override
    {
        out.query = query;
        if (!bytes_.empty()) bytes_.prepare(query, out.bytes);
    }
    void scores(const GraphQuery& query, std::span<const std::uint32_t> rows, float* out) const override
    {
        if (!bytes_.empty()) return bytes_.scores(query.bytes, rows, out);
        scores_gather(metric_, query.query, vectors_, rows.data(), rows.size(), dimensions_, out);
    }
    void seed_scores(const GraphQuery& query, std::span<const std::uint32_t> seeds, float* out) const override
    {
        if (!bytes_.empty()) return bytes_.seed_scores(query.bytes, out);
        scores(query, seeds, out);
    }
    double value(const GraphQuery& query, std::uint32_t row) const override
    {
        const float* stored = vectors_ + std::size_t{row} * dimensions_;
        const double distance = canonical_distance(metric_, query.query, stored, dimensions_);
        return metric_ == Metric::cosine ? lower_bound(metric_, distance, 0, 1) : distance;
    }

private:
    Metric metric_;
    std::size_t dimensions_;
    std::size_t rows_;
    KeptArray<float> kept_;
    const float* vectors_ = nullptr;
    ByteRows bytes_;
};

class HalfVectors : public StoredRows
{
public:
    HalfVectors(Metric metric, std::size_t dimensions, std::size_t rows)
        : metric_(metric), dimensions_(dimensions), rows_(rows)
    {
        half_.codec.mean.resize(dimensions);
    }
    bool write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes) override
    {
        if (array != array_half) return half_.write(array, offset, bytes);
        write_piece(kept_.room(rows_ * dimensions_), offset, bytes);
        return true;
    }
    void finish_load() override
    {
        half_.take_scale();
        halves_ = kept_.all(rows_ * dimensions_).data();
        // The error in L1 is at most the root of the dimensions times that in L2.
        error_ = half_.scale[1];
        if (metric_ == Metric::l1) error_ *= std::sqrt(static_cast<double>(dimensions_));
    }
    void lend(std::span<const half_bits> halves) override { kept_.borrow(halves); }
    void prepare_searches(std::span<const std::uint32_t> seeds, EdgeView edges, ThreadPool& pool) override
    {
        const auto decode = [this](std::uint32_t row, float* out) {
            half_.codec.decode(halves_ + std::size_t{row} * dimensions_, out);
        };
        bytes_.build(metric_, dimensions_, seeds, edges, decode, pool);
    }
    std::uint64_t memory_bytes() const override { return kept_.memory_bytes() + bytes_.memory_bytes(); }
    ResultKind result_kind() const override { return ResultKind::lower_bound; }
    double bound_width(const float* query) const override
    {
        if (metric_ == Metric::l1) return 2 * error_;
        return pgwarp::bound_width(metric_, error_, canonical_norm(query, dimensions_));
    }
    // Distances in the codec's space are larger by the scale (l2: by its square); products lack that of the query and
    // the mean.
    void prepare(const float* query, GraphQuery& out) const override
    {
        out.query = query;
        out.norm = canonical_norm(query, dimensions_);
        if (!bytes_.empty()) return bytes_.prepare(query, out.bytes);
        out.moved.assign(query, query + dimensions_);
        if (metric_ != Metric::l2 && metric_ != Metric::l1) return;
        for (std::size_t d = 0; d < dimensions_; ++d)
            out.moved[d] =
                static_cast<float>((static_cast<double>(query[d]) - half_.codec.mean[d]) * half_.codec.scale);
    }
    void scores(const GraphQuery& query, std::span<const std::uint32_t> rows, float* out) const override
    {
        if (!bytes_.empty()) return bytes_.scores(query.bytes, rows, out);
        half_scores_gather(metric_, query.moved.data(), halves_, rows.data(), rows.size(), dimensions_, out);
    }
    void seed_scores(const GraphQuery& query, std::span<const std::uint32_t> seeds, float* out) const override
    {
        if (!bytes_.empty()) return bytes_.seed_scores(query.bytes, out);
        scores(query, seeds, out);
    }
    double value(const GraphQuery& query, std::uint32_t row) const override
    {
        thread_local std::vector<float> decoded;
        decoded.resize(dimensions_);
        half_.codec.decode(halves_ + std::size_t{row} * dimensions_, decoded.data());
        const double distance = decoded_distance(metric_, query.query, decoded.data(), dimensions_);
        if (metric_ == Metric::l1) return std::max(0.0, distance * (1 - bound_rounding) - error_);
        return lower_bound(metric_, distance, error_, query.norm);
    }

private:
    Metric metric_;
    std::size_t dimensions_;
    HalfRows half_;
    double error_ = 0;
    std::size_t rows_;
    KeptArray<half_bits> kept_;
    const half_bits* halves_ = nullptr;
    ByteRows bytes_;
};

// Values are numbers of differing bits.
class BitRows : public StoredRows
{
public:
    BitRows(std::size_t dimensions, std::size_t rows, std::size_t bits)
        : dimensions_(dimensions), words_(bits / 32), projection_(bits * (dimensions + 1)), rows_(rows)
    {
    }
    bool write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes) override
    {
        if (array == array_projection) {
            write_piece(std::span<float>(projection_), offset, bytes);
        } else if (array == array_bits) {
            write_piece(kept_.room(rows_ * words_), offset, bytes);
        } else {
            return false;
        }
        return true;
    }
    void lend(std::span<const std::uint32_t> bits) override { kept_.borrow(bits); }
    void finish_load() override { bits_ = kept_.all(rows_ * words_).data(); }
    std::uint64_t memory_bytes() const override { return projection_.size() * sizeof(float) + kept_.memory_bytes(); }
    ResultKind result_kind() const override { return ResultKind::approximate; }
    void prepare(const float* query, GraphQuery& out) const override
    {
        out.bits.resize(words_);
        project_row(projection_, query, dimensions_, out.bits.data());
    }
    void scores(const GraphQuery& query, std::span<const std::uint32_t> rows, float* out) const override
    {
        for (std::size_t i = 0; i < rows.size(); ++i) out[i] = static_cast<float>(differing(query, rows[i]));
    }
    double value(const GraphQuery& query, std::uint32_t row) const override { return differing(query, row); }

private:
    int differing(const GraphQuery& query, std::uint32_t row) const
    {
        const std::uint32_t* stored = bits_ + std::size_t{row} * words_;
        int count = 0;
        for (std::size_t w = 0; w < words_; ++w) count += std::popcount(stored[w] ^ query.bits[w]);
        return count;
    }

    std::size_t dimensions_;
    std::size_t words_;
    std::vector<float> projection_;
    std::size_t rows_;
    KeptArray<std::uint32_t> kept_;
    const std::uint32_t* bits_ = nullptr;
};

}  // namespace

void project_row(std::span<const float> projection, const float* row, std::size_t dimensions, std::uint32_t* bits)
{
    const std::size_t count = projection.size() / (dimensions + 1);
    for (std::size_t b = 0; b < count; ++b) {
        if (b % 32 == 0) bits[b / 32] = 0;
        const float* direction = projection.data() + b * (dimensions + 1);
        if (canonical_dot(direction, row, dimensions) > direction[dimensions]) bits[b / 32] |= 1U << (b % 32);
    }
}

std::unique_ptr<StoredRows> make_stored_rows(Metric metric, std::size_t dimensions, std::size_t rows,
                                             const GraphOptions& options)
{
    switch (options.vectors) {
        case GraphVectors::half:
            return std::make_unique<HalfVectors>(metric, dimensions, rows);
        case GraphVectors::bits:
            return std::make_unique<BitRows>(dimensions, rows, options.bits);
        case GraphVectors::full:
            break;
    }
    return std::make_unique<FullRows>(metric, dimensions, rows);
}

}  // namespace pgwarp
