// Search of texts by edit distance.
#include <limits>
#include <vector>

#include "methods/matchcount/matchcount.h"
#include "methods/ordered_scan.h"
#include "methods/rows/stored_lists.h"
#include "numeric/edit_distance.h"

namespace pgwarp::matchcount
{

namespace
{

// A pattern with its memory.
class OwnedPattern
{
public:
    explicit OwnedPattern(const TextView& text)
        : memory_(EditPattern::memory_words(text)), pattern_(text, EditKind::levenshtein, memory_.data())
    {
    }
    double distance(const TextView& text) const { return pattern_.distance(text); }

private:
    std::vector<std::uint64_t> memory_;
    EditPattern pattern_;
};

class TextSearcher : public Searcher
{
public:
    TextSearcher(const IndexShape& shape, const ParameterList& options, std::span<const ArrayShape> arrays)
        : form_(gram_form(options)), texts_(shape, arrays)
    {
    }

    void write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes) override
    {
        if (!texts_.write(array, offset, bytes)) throw BadRequest("unknown array of texts");
    }
    void finish_load(ThreadPool&) override { texts_.finish_load(); }
    std::uint64_t memory_bytes() const override { return texts_.memory_bytes(); }
    ResultKind result_kind() const override { return ResultKind::exact; }

    bool compares_rows() const override { return true; }
    void compare_rows(const RowView& query, const RowView& rows, std::span<double> out) const override
    {
        const OwnedPattern pattern(view_text(query.list(0)));
        for (std::size_t i = 0; i < rows.count; ++i) out[i] = pattern.distance(view_text(rows.list(i)));
    }

    void search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results, ThreadPool& pool) const override
    {
        results.assign(batch.count, {});
        for (std::size_t q = 0; q < batch.count; ++q)
            results[q] = first_behind(batch, q, -std::numeric_limits<double>::infinity(), 0, pool);
    }
    void search_exact(const SearchBatch& batch, double after_distance, std::uint32_t after_row,
                      std::vector<RowResult>& results, ThreadPool& pool) const override
    {
        results = first_behind(batch, 0, after_distance, after_row, pool);
    }
    double search_cost(const SearchBatch& batch) const override
    {
        return 2.0 * static_cast<double>(batch.count) * static_cast<double>(texts_.rows().word_count());
    }
    ParameterList resolved_settings(const SearchBatch&) const override { return {}; }

private:
    std::vector<RowResult> first_behind(const SearchBatch& batch, std::size_t query, double after_distance,
                                        std::uint32_t after_row, ThreadPool& pool) const
    {
        const TextView text = view_text(batch.lists.list(query));
        const RowView rows = texts_.rows();
        const RowResult cursor{after_distance, after_row};
        FirstRows first(batch.k);
        std::mutex mutex;
        pool.parallel_for(rows.count, 4096, [&](std::size_t begin, std::size_t end) {
            batch.check_cancel();
            const OwnedPattern pattern(text);
            FirstRows some(batch.k);
            for (std::size_t i = begin; i < end; ++i) {
                if (bit_is_set(batch.dead, i)) continue;
                const RowResult found{pattern.distance(view_text(rows.list(i))), static_cast<std::uint32_t>(i)};
                if (comes_before(cursor, found)) some.offer(found);
            }
            const std::lock_guard lock(mutex);
            first.merge(some);
        });
        return first.take_sorted();
    }

    GramForm form_;
    StoredLists texts_;
};

}  // namespace

double edit_distance(const TextView& a, const TextView& b)
{
    return OwnedPattern(a).distance(b);
}

std::unique_ptr<Searcher> make_searcher(const IndexShape& shape, const ParameterList& options,
                                        std::span<const ArrayShape> arrays)
{
    return std::make_unique<TextSearcher>(shape, options, arrays);
}

}  // namespace pgwarp::matchcount
