// Rows stored as bytes alone (codes = int8, refine = none), read from the lists that the proposer scans. Values are
// canonical distances to the decoded rows, the same bits on every device.
#include "methods/bounds.h"
#include "methods/ivfadc/row_store.h"
#include "methods/rows/byte_lists.h"

namespace pgwarp
{

namespace
{

class ByteStore : public RowStore
{
public:
    ByteStore(Metric metric, std::size_t dimensions, std::span<const float> centroids, const ByteLists& rows)
        : metric_(metric), dimensions_(dimensions), centroids_(centroids), rows_(rows)
    {
    }
    bool write(const std::string&, std::uint64_t, std::span<const std::byte>, InvertedLists&) override { return false; }
    void finish_load(const InvertedLists& lists, ThreadPool&) override
    {
        begin_.resize(lists.lists());
        for (std::size_t list = 0; list < begin_.size(); ++list) begin_[list] = lists.begin(list);
    }
    std::uint64_t memory_bytes() const override { return begin_.size() * sizeof(std::uint32_t); }
    ResultKind result_kind() const override { return ResultKind::approximate; }
    PreparedQuery prepare(const float* query) const override
    {
        PreparedQuery prepared;
        prepared.query = query;
        return prepared;
    }
    // Not used by searches: the proposer scores bytes.
    void scores(const PreparedQuery& query, std::size_t list, float, std::size_t begin, std::size_t count,
                float* out) const override
    {
        for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<float>(value(query, list, begin + i));
    }
    double value(const PreparedQuery& query, std::size_t list, std::size_t position) const override
    {
        thread_local std::vector<float> row;
        row.resize(dimensions_);
        rows_.decode(rows_.begin(list) + position - begin_[list], centroids_.data() + list * dimensions_, row.data());
        return decoded_distance(metric_, query.query, row.data(), dimensions_);
    }

private:
    Metric metric_;
    std::size_t dimensions_;
    std::span<const float> centroids_;
    const ByteLists& rows_;
    std::vector<std::uint32_t> begin_;  // first position of a list
};

}  // namespace

std::unique_ptr<RowStore> make_byte_store(Metric metric, std::size_t dimensions, std::span<const float> centroids,
                                          const ByteLists& rows)
{
    return std::make_unique<ByteStore>(metric, dimensions, centroids, rows);
}

}  // namespace pgwarp
