// Searches of the index method: they find a mirror's bags by BM25.
#include <optional>
#include <vector>

#include "methods/arrays.h"
#include "methods/matchcount/bag_search.h"
#include "methods/matchcount/matchcount.h"
#include "methods/rows/stored_lists.h"

namespace pgwarp::matchcount
{

namespace
{

class BagSearcher : public Searcher
{
public:
    BagSearcher(const IndexShape& shape, std::span<const ArrayShape> arrays) : stored_(std::in_place, shape, arrays)
    {
        // A term gets a keyword, a posting and a frequency.
        const ArrayShape* words = find_array(arrays, array_list_words);
        if (words != nullptr) expected_bytes_ = words->rows * (sizeof(std::uint32_t) + 1);
    }

    void write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes) override
    {
        if (!stored_->write(array, offset, bytes)) throw BadRequest("unknown array of bags");
    }
    void finish_load(ThreadPool& pool) override
    {
        stored_->finish_load();
        index_.emplace(make_bag_index(stored_->rows(), pool));
        stored_.reset();
    }
    std::uint64_t memory_bytes() const override
    {
        return index_ ? index_->memory_bytes() : stored_->memory_bytes() + expected_bytes_;
    }
    ResultKind result_kind() const override { return ResultKind::exact; }

    bool finds_all() const override { return true; }
    double filtered_cost(const SearchBatch& batch, double) const override { return search_cost(batch); }
    bool compares_rows() const override { return true; }
    void compare_rows(const RowView& query, const RowView& rows, std::span<double> out) const override
    {
        for (std::size_t i = 0; i < rows.count; ++i)
            out[i] = distance_of_score(score_of_bag(query.list(0), rows.list(i)));
    }

    void search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results, ThreadPool& pool) const override
    {
        results.assign(batch.count, {});
        for_queries(batch, pool, [&](std::size_t q) { results[q] = search_bags(*index_, part_query(batch, q)); });
    }
    void search_exact(const SearchBatch& batch, double after_distance, std::uint32_t after_row,
                      std::vector<RowResult>& results, ThreadPool&) const override
    {
        PartQuery query = part_query(batch, 0);
        query.after = {after_distance, after_row};
        results = search_bags(*index_, query);
    }
    // Reads a list for each term, which is taken to hold a sixteenth of the rows.
    double search_cost(const SearchBatch& batch) const override
    {
        const double terms = static_cast<double>(batch.lists.word_count()) / bag_query_term_words;
        return static_cast<double>(index_->lists.rows()) * (static_cast<double>(batch.count) + terms) / 16;
    }
    ParameterList resolved_settings(const SearchBatch&) const override { return {}; }
    TermCounts count_terms(std::span<const std::uint64_t> terms) const override
    {
        return count_terms_of(*index_, terms);
    }

private:
    std::uint64_t expected_bytes_ = 0;   // of keywords, postings and frequencies to come
    std::optional<StoredLists> stored_;  // until they are loaded
    std::optional<BagIndex> index_;      // afterwards
};

}  // namespace

std::unique_ptr<Searcher> make_bag_searcher(const IndexShape& shape, std::span<const ArrayShape> arrays)
{
    return std::make_unique<BagSearcher>(shape, arrays);
}

}  // namespace pgwarp::matchcount
