// Rows stored as floats or as halves.
#include <algorithm>
#include <cstring>

#include "methods/arrays.h"
#include "methods/ivfadc/row_store.h"
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

class VectorStore : public RowStore
{
public:
    VectorStore(Metric metric, std::size_t dimensions, std::size_t rows, VectorForm form)
        : dimensions_(dimensions), rows_(metric, dimensions, rows, form, codec_)
    {
        codec_.codec.mean.resize(dimensions);
    }
    bool write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes,
               InvertedLists& lists) override
    {
        if (!rows_.is_array(array)) return codec_.write(array, offset, bytes);
        lists.arrange();
        scatter_rows(bytes, offset, rows_.row_bytes(), lists, rows_.bytes().data());
        return true;
    }
    void finish_load(const InvertedLists&, ThreadPool&) override { codec_.take_scale(); }
    std::uint64_t memory_bytes() const override { return rows_.memory_bytes(); }
    ResultKind result_kind() const override { return rows_.result_kind(); }
    PreparedQuery prepare(const float* query) const override
    {
        PreparedQuery prepared;
        prepared.query = query;
        prepared.norm = canonical_norm(query, dimensions_);
        rows_.prepare(query, prepared.moved);
        return prepared;
    }
    void scores(const PreparedQuery& query, std::size_t, float, std::size_t begin, std::size_t count,
                float* out) const override
    {
        rows_.scores(query.moved.data(), begin, count, out);
    }
    bool scores_of(const PreparedQuery& query, std::span<const std::uint32_t> positions, float* out) const override
    {
        rows_.scores(query.moved.data(), positions, out);
        return true;
    }
    void prefetch(std::size_t position) const override { rows_.prefetch(position); }
    double value(const PreparedQuery& query, std::size_t, std::size_t position) const override
    {
        return rows_.value(query.query, query.norm, position);
    }
    double bound_width(const float* query) const override { return rows_.bound_width(query); }
    bool decode(std::size_t position, float* out) const override
    {
        rows_.decode(position, out);
        return true;
    }

private:
    std::size_t dimensions_;
    HalfRows codec_;
    StoredVectors rows_;
};

}  // namespace

std::unique_ptr<RowStore> make_vector_store(Metric metric, std::size_t dimensions, std::size_t rows, VectorForm form)
{
    return std::make_unique<VectorStore>(metric, dimensions, rows, form);
}

}  // namespace pgwarp
