// Searches of the index method: they find a mirror's texts by the metric of the index.
#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "methods/arrays.h"
#include "methods/matchcount/count_workspaces.h"
#include "methods/matchcount/gram_search.h"
#include "methods/matchcount/matchcount.h"
#include "methods/matchcount/one_round.h"
#include "methods/matchcount/text_search.h"
#include "methods/rows/stored_lists.h"
#include "numeric/text_pattern.h"
#include "protocol/search_bound.h"

namespace pgwarp::matchcount
{

namespace
{

// A pattern with its memory.
class OwnedPattern
{
public:
    OwnedPattern(Metric metric, const TextView& text)
        : memory_(TextPattern::memory_words(metric, text)), pattern_(metric, text, memory_.data())
    {
    }
    double distance(const TextView& text) const { return pattern_.distance(text); }

private:
    std::vector<std::uint64_t> memory_;
    TextPattern pattern_;
};

// Returns the largest distance of interest, a whole number; false where no text is that near.
bool read_within(const ParameterList& settings, std::uint32_t* within)
{
    const double bound = within_of(settings);
    *within = bound < no_edit_limit ? static_cast<std::uint32_t>(std::max(bound, 0.0)) : no_edit_limit;
    return bound >= 0;
}

class TextSearcher : public Searcher
{
public:
    TextSearcher(const IndexShape& shape, const ParameterList& options, std::span<const ArrayShape> arrays)
        : metric_(static_cast<Metric>(shape.metric)), form_(gram_form(options)), stored_(std::in_place, shape, arrays)
    {
        // A word holds four characters or fewer, each of which gets a posting.
        const ArrayShape* words = find_array(arrays, array_list_words);
        if (words != nullptr) expected_bytes_ = words->rows * 4 * sizeof(std::uint32_t);
    }

    void write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes) override
    {
        if (!stored_->write(array, offset, bytes)) throw BadRequest("unknown array of texts");
    }
    void finish_load(ThreadPool& pool) override
    {
        stored_->finish_load();
        TextsByLength texts(stored_->rows(), pool);
        stored_.reset();
        index_.emplace(make_text_index(std::move(texts), form_, pool));
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
        const OwnedPattern pattern(metric_, view_text(query.list(0)));
        for (std::size_t i = 0; i < rows.count; ++i) out[i] = pattern.distance(view_text(rows.list(i)));
    }

    void search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results, ThreadPool& pool) const override
    {
        results.assign(batch.count, {});
        const Dead::Use dead = dead_places(batch);
        const RowResult front = {-1, 0};
        if (batch.count < pool.threads()) {
            for (std::size_t q = 0; q < batch.count; ++q) results[q] = find(batch, q, *dead, front, pool);
            return;
        }
        for_queries(batch, pool, [&](std::size_t q) { results[q] = find(batch, q, *dead, front, caller_alone()); });
    }
    void search_exact(const SearchBatch& batch, double after_distance, std::uint32_t after_row,
                      std::vector<RowResult>& results, ThreadPool& pool) const override
    {
        const Dead::Use dead = dead_places(batch);
        results = find(batch, 0, *dead, {after_distance, after_row}, pool);
    }
    // A step compares a character of a text with 64 of the query.
    double search_cost(const SearchBatch& batch) const override
    {
        const double steps = static_cast<double>(batch.count) + static_cast<double>(batch.lists.word_count()) / 64;
        return 2.0 * steps * static_cast<double>(index_->texts.texts().word_count());
    }
    ParameterList resolved_settings(const SearchBatch& batch) const override
    {
        ParameterList settings;
        if (batch.settings.get(matchcount_one_round, 0) != 0) settings.set(matchcount_one_round, 1);
        return settings;
    }

private:
    using Dead = OfBitmap<std::vector<std::uint64_t>>;

    Dead::Use dead_places(const SearchBatch& batch) const
    {
        return dead_.get(batch.dead_version, [&] { return index_->texts.bitmap_of_places(batch.dead); });
    }
    // The results of a query behind `after`.
    std::vector<RowResult> find(const SearchBatch& batch, std::size_t query, RowBitmap dead, const RowResult& after,
                                ThreadPool& pool) const
    {
        const std::optional<EditKind> kind = edit_kind(metric_);
        CountWorkspace workspace = workspaces_.take();
        std::vector<RowResult> found =
            kind ? search_texts(*index_, edit_query(batch, query, *kind, dead, after), workspace, pool)
                 : search_grams(*index_, gram_query(batch, query, dead, after), workspace, pool);
        workspaces_.give_back(std::move(workspace));
        return found;
    }
    static TextQuery edit_query(const SearchBatch& batch, std::size_t query, EditKind kind, RowBitmap dead,
                                const RowResult& after)
    {
        TextQuery wanted;
        wanted.text = view_text(batch.lists.list(query));
        wanted.kind = kind;
        wanted.k = read_within(batch.settings, &wanted.within) ? batch.k : 0;
        wanted.dead = dead;
        wanted.after = after;
        wanted.one_round = batch.settings.get(matchcount_one_round, 0) != 0;
        wanted.cancel = batch.cancel;
        return wanted;
    }
    static GramQuery gram_query(const SearchBatch& batch, std::size_t query, RowBitmap dead, const RowResult& after)
    {
        GramQuery wanted;
        wanted.text = view_text(batch.lists.list(query));
        wanted.k = batch.k;
        wanted.dead = dead;
        wanted.after = after;
        wanted.one_round = batch.settings.get(matchcount_one_round, 0) != 0;
        wanted.within = within_of(batch.settings);
        wanted.cancel = batch.cancel;
        return wanted;
    }

    Metric metric_;
    GramForm form_;
    std::uint64_t expected_bytes_ = 0;   // of the lists to come
    std::optional<StoredLists> stored_;  // until they are loaded
    std::optional<TextIndex> index_;     // afterwards
    mutable Dead dead_;
    mutable CountWorkspaces workspaces_;
};

}  // namespace

std::unique_ptr<Searcher> make_text_searcher(const IndexShape& shape, const ParameterList& options,
                                             std::span<const ArrayShape> arrays)
{
    return std::make_unique<TextSearcher>(shape, options, arrays);
}

}  // namespace pgwarp::matchcount
