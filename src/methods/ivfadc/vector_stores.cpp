// Rows stored as floats or as halves.
#include <algorithm>
#include <cstring>

#include "methods/arrays.h"
#include "methods/bounds.h"
#include "methods/bulk_memory.h"
#include "methods/ivfadc/row_store.h"
#include "methods/rows/half_rows.h"
#include "numeric/distance.h"

namespace pgwarp
{

void scatter_rows(std::span<const std::byte> bytes, std::uint64_t offset, std::size_t row_bytes,
                  const InvertedLists& lists, std::byte* out)
{
    std::size_t done = 0;
    while (done < bytes.size()) {
        const std::uint64_t row = (offset + done) / row_bytes;
        const std::size_t within = (offset + done) % row_bytes;
        if (row >= lists.rows()) throw BadRequest("past the end of an array");
        const std::size_t count = std::min(row_bytes - within, bytes.size() - done);
        std::memcpy(out + std::size_t{lists.position_of(row)} * row_bytes + within, bytes.data() + done, count);
        done += count;
    }
}

namespace
{

void prefetch_bytes(const void* bytes, std::size_t count)
{
    constexpr std::size_t line = 64;
    constexpr std::size_t most = 16 * line;  // the hardware prefetcher loads the rest
    for (std::size_t at = 0; at < std::min(count, most); at += line)
        __builtin_prefetch(static_cast<const std::byte*>(bytes) + at);
}

class FullStore : public RowStore
{
public:
    FullStore(Metric metric, std::size_t dimensions, std::size_t rows)
        : metric_(metric), dimensions_(dimensions), vectors_(rows * dimensions)
    {
    }
    bool write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes,
               InvertedLists& lists) override
    {
        if (array != array_vectors) return false;
        lists.arrange();
        scatter_rows(bytes, offset, dimensions_ * sizeof(float), lists, reinterpret_cast<std::byte*>(vectors_.data()));
        return true;
    }
    void finish_load(const InvertedLists&, ThreadPool&) override {}
    std::uint64_t memory_bytes() const override { return vectors_.size() * sizeof(float); }
    ResultKind result_kind() const override { return promise_of_vectors(metric_ == Metric::cosine).kind; }
    PreparedQuery prepare(const float* query) const override
    {
        PreparedQuery prepared;
        prepared.query = query;
        prepared.norm = canonical_norm(query, dimensions_);
        return prepared;
    }
    void scores(const PreparedQuery& query, std::size_t, float, std::size_t begin, std::size_t count,
                float* out) const override
    {
        pgwarp::scores(metric_, query.query, vectors_.data() + begin * dimensions_, count, dimensions_, out);
    }
    void prefetch(std::size_t position) const override
    {
        prefetch_bytes(vectors_.data() + position * dimensions_, dimensions_ * sizeof(float));
    }
    double value(const PreparedQuery& query, std::size_t, std::size_t position) const override
    {
        const double distance =
            canonical_distance(metric_, query.query, vectors_.data() + position * dimensions_, dimensions_);
        return metric_ == Metric::cosine ? lower_bound(metric_, distance, 0, 1) : distance;
    }
    double bound_width(const float*) const override { return pgwarp::bound_width(metric_, 0, 1); }
    bool decode(std::size_t position, float* out) const override
    {
        std::copy_n(vectors_.data() + position * dimensions_, dimensions_, out);
        return true;
    }

private:
    Metric metric_;
    std::size_t dimensions_;
    BulkVector<float> vectors_;
};

class HalfStore : public RowStore
{
public:
    HalfStore(Metric metric, std::size_t dimensions, std::size_t rows)
        : metric_(metric), dimensions_(dimensions), halves_(rows * dimensions)
    {
        half_.codec.mean.resize(dimensions);
    }
    bool write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes,
               InvertedLists& lists) override
    {
        if (array != array_half) return half_.write(array, offset, bytes);
        lists.arrange();
        scatter_rows(bytes, offset, dimensions_ * sizeof(half_bits), lists,
                     reinterpret_cast<std::byte*>(halves_.data()));
        return true;
    }
    void finish_load(const InvertedLists&, ThreadPool&) override { half_.take_scale(); }
    std::uint64_t memory_bytes() const override { return halves_.size() * sizeof(half_bits); }
    ResultKind result_kind() const override { return ResultKind::lower_bound; }

    // Scores are computed in the codec's space: squared distances are larger by scale^2; a dot product lacks that of
    // the query and the mean.
    PreparedQuery prepare(const float* query) const override
    {
        PreparedQuery prepared;
        prepared.query = query;
        prepared.norm = canonical_norm(query, dimensions_);
        prepared.moved.assign(query, query + dimensions_);
        if (metric_ == Metric::l2) {
            for (std::size_t d = 0; d < dimensions_; ++d) {
                prepared.moved[d] =
                    static_cast<float>((static_cast<double>(query[d]) - half_.codec.mean[d]) * half_.codec.scale);
            }
        }
        return prepared;
    }
    void scores(const PreparedQuery& query, std::size_t, float, std::size_t begin, std::size_t count,
                float* out) const override
    {
        half_scores(metric_, query.moved.data(), halves_.data() + begin * dimensions_, count, dimensions_, out);
    }
    void prefetch(std::size_t position) const override
    {
        prefetch_bytes(halves_.data() + position * dimensions_, dimensions_ * sizeof(half_bits));
    }
    double value(const PreparedQuery& query, std::size_t, std::size_t position) const override
    {
        thread_local std::vector<float> decoded;
        decoded.resize(dimensions_);
        half_.codec.decode(halves_.data() + position * dimensions_, decoded.data());
        const double distance = decoded_distance(metric_, query.query, decoded.data(), dimensions_);
        return lower_bound(metric_, distance, half_.scale[1], query.norm);
    }
    double bound_width(const float* query) const override
    {
        return pgwarp::bound_width(metric_, half_.scale[1], canonical_norm(query, dimensions_));
    }
    bool decode(std::size_t position, float* out) const override
    {
        half_.codec.decode(halves_.data() + position * dimensions_, out);
        return true;
    }

private:
    Metric metric_;
    std::size_t dimensions_;
    HalfRows half_;
    BulkVector<half_bits> halves_;
};

}  // namespace

std::unique_ptr<RowStore> make_full_store(Metric metric, std::size_t dimensions, std::size_t rows)
{
    return std::make_unique<FullStore>(metric, dimensions, rows);
}

std::unique_ptr<RowStore> make_half_store(Metric metric, std::size_t dimensions, std::size_t rows)
{
    return std::make_unique<HalfStore>(metric, dimensions, rows);
}

}  // namespace pgwarp
