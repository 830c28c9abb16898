// Searches of sets by their signatures: the rows of largest match count are ranked by their Jaccard distances.
#include "methods/arrays.h"
#include "methods/matchcount/matchcount.h"
#include "methods/matchcount/part_index.h"
#include "methods/matchcount/set_hashes.h"
#include "methods/matchcount/signature_searcher.h"
#include "methods/rows/stored_lists.h"
#include "protocol/standing_out.h"

namespace pgwarp::matchcount
{

namespace
{

constexpr std::size_t rank_grain = 16;  // of sets that have up to 32,768 elements

std::size_t rows_of(std::span<const ArrayShape> arrays)
{
    const ArrayShape* offsets = find_array(arrays, array_list_offsets);
    return offsets != nullptr && offsets->rows > 0 ? offsets->rows - 1 : 0;
}

class SetSearcher : public SignatureSearcher
{
public:
    SetSearcher(const IndexShape& shape, const ParameterList& options, const SetHashes& hashes,
                std::span<const ArrayShape> arrays)
        : SignatureSearcher(rows_of(arrays), hashes.functions(), hashes.signature_bytes(), rank_grain),
          hashes_(hashes),
          sets_(shape, arrays)
    {
        for (const char* name : {option_standing_out, option_standing_within}) {
            const std::int64_t value = options.get(name, -1);
            if (value >= 0) measured_.set(name, value);
        }
        if (rows() > 0) expect_signatures(arrays);
    }

    void write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes) override
    {
        if (array == array_signatures) return write_signatures(offset, bytes);
        if (!sets_.write(array, offset, bytes)) throw BadRequest("unknown array of sets");
    }
    void finish_load(ThreadPool&) override { sets_.finish_load(); }
    std::uint64_t memory_bytes() const override { return signature_memory() + sets_.memory_bytes(); }
    ResultKind result_kind() const override { return ResultKind::exact; }

    // Where the calibration chose the candidates, also the measurement that it rests on.
    ParameterList resolved_settings(const SearchBatch& batch) const override
    {
        ParameterList settings = SignatureSearcher::resolved_settings(batch);
        if (batch.settings.get(parameter_candidates, 0) > 0) return settings;
        for (std::uint32_t i = 0; i < measured_.count; ++i)
            settings.set(measured_.items[i].name, measured_.items[i].value);
        return settings;
    }

    bool compares_rows() const override { return true; }
    void compare_rows(const RowView& query, const RowView& rows, std::span<double> out) const override
    {
        for (std::size_t i = 0; i < rows.count; ++i) out[i] = distance(query.list(0), rows.list(i));
    }
    // Signing takes a few operations an element and function, a comparison those of the merge of two sets.
    double search_cost(const SearchBatch& batch) const override
    {
        if (rows() == 0) return 0;
        const auto bytes = static_cast<double>(signature_bytes());
        const auto signing = static_cast<double>(batch.lists.word_count()) * bytes;
        const auto scan = static_cast<double>(rows()) * bytes / 2;
        const double row_words = static_cast<double>(sets_.rows().word_count()) / static_cast<double>(rows());
        return signing +
               static_cast<double>(batch.count) * (scan + 2 * row_words * static_cast<double>(candidates_of(batch)));
    }

private:
    static double distance(std::span<const std::uint32_t> query, std::span<const std::uint32_t> row)
    {
        return distance_of_parts(ElementType::set, Metric::set_jaccard, query, row);
    }
    void sign_queries(const SearchBatch& batch, std::uint8_t* out, ThreadPool& pool) const override
    {
        hashes_.sign(batch.lists.slice(0, batch.count), out, pool, batch.cancel);
    }
    void count_matches(const std::uint8_t* query, const std::uint8_t* rows, std::size_t count,
                       std::uint16_t* out) const override
    {
        hashes_.count_matches(query, rows, count, out);
    }
    double value(const SearchBatch& batch, std::size_t query, std::size_t row) const override
    {
        return distance(batch.lists.list(query), sets_.rows().list(row));
    }
    double similarity(std::uint32_t count) const override { return hashes_.similarity(count); }

    SetHashes hashes_;
    StoredLists sets_;
    ParameterList measured_;
};

}  // namespace

std::unique_ptr<Searcher> make_set_searcher(const IndexShape& shape, const ParameterList& options,
                                            std::span<const ArrayShape> arrays)
{
    return std::make_unique<SetSearcher>(shape, options, SetHashes(functions_of_sets(shape, options)), arrays);
}

}  // namespace pgwarp::matchcount
