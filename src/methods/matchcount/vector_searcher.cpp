// Searches of vectors: the rows of largest match count are ranked by their distances.
#include "methods/arrays.h"
#include "methods/bounds.h"
#include "methods/bulk_memory.h"
#include "methods/matchcount/matchcount.h"
#include "methods/matchcount/signature_searcher.h"

namespace pgwarp::matchcount
{

namespace
{

constexpr std::size_t vector_rank_grain = 256;

std::size_t vector_rows_of(std::span<const ArrayShape> arrays)
{
    const ArrayShape* vectors = find_array(arrays, array_vectors);
    return vectors != nullptr ? vectors->rows : 0;
}

class VectorSearcher : public SignatureSearcher
{
public:
    VectorSearcher(VectorHashes hashes, std::span<const ArrayShape> arrays)
        : SignatureSearcher(vector_rows_of(arrays), hashes.form().functions, hashes.signature_bytes(),
                            vector_rank_grain),
          hashes_(std::move(hashes))
    {
        if (rows() == 0) return;
        const ArrayShape functions = hashes_.shape();
        require_array(arrays, array_hashes, functions.type, functions.rows, functions.width);
        expect_signatures(arrays);
        require_array(arrays, array_vectors, ArrayType::f32, rows(), hashes_.dimensions());
        vectors_.resize(rows() * hashes_.dimensions());
    }

    void write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes) override
    {
        if (array == array_hashes) {
            write_piece(hashes_.parameters(), offset, bytes);
        } else if (array == array_signatures) {
            write_signatures(offset, bytes);
        } else if (array == array_vectors) {
            write_piece(std::span<float>(vectors_), offset, bytes);
        } else {
            throw BadRequest("unknown array of signatures");
        }
    }
    void finish_load(ThreadPool&) override {}
    std::uint64_t memory_bytes() const override
    {
        return signature_memory() + (vectors_.size() + hashes_.parameters().size()) * sizeof(float);
    }
    ResultKind result_kind() const override { return promise_of_vectors(metric() == Metric::cosine).kind; }
    double bound_width(const float*) const override { return pgwarp::bound_width(metric(), 0, 1); }
    double search_cost(const SearchBatch& batch) const override
    {
        const auto compared = static_cast<double>(rows()) * static_cast<double>(signature_bytes()) / 2;
        const auto ranked = 2.0 * static_cast<double>(candidates_of(batch) * hashes_.dimensions());
        return static_cast<double>(batch.count) * (compared + ranked);
    }

private:
    Metric metric() const { return hashes_.form().metric; }

    void sign_queries(const SearchBatch& batch, std::uint8_t* out, ThreadPool& pool) const override
    {
        hashes_.sign(batch.queries.first(batch.count * hashes_.dimensions()), out, pool, batch.cancel);
    }
    void count_matches(const std::uint8_t* query, const std::uint8_t* rows, std::size_t count,
                       std::uint16_t* out) const override
    {
        hashes_.count_matches(query, rows, count, out);
    }
    double value(const SearchBatch& batch, std::size_t query, std::size_t row) const override
    {
        const std::size_t dimensions = hashes_.dimensions();
        const double distance = canonical_distance(metric(), batch.queries.data() + query * dimensions,
                                                   vectors_.data() + row * dimensions, dimensions);
        return metric() == Metric::cosine ? lower_bound(metric(), distance, 0, 1) : distance;
    }
    double similarity(std::uint32_t count) const override
    {
        return static_cast<double>(count) / static_cast<double>(hashes_.form().functions);
    }

    VectorHashes hashes_;
    BulkVector<float> vectors_;  // [rows][dimensions]
};

}  // namespace

std::unique_ptr<Searcher> make_vector_searcher(const IndexShape& shape, const ParameterList& options,
                                               std::span<const ArrayShape> arrays)
{
    return std::make_unique<VectorSearcher>(VectorHashes(hash_form(shape, options), shape.dimensions), arrays);
}

}  // namespace pgwarp::matchcount
