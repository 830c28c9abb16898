// Searches of the index method: they find a mirror's texts by edit distance.
#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "methods/arrays.h"
#include "methods/matchcount/matchcount.h"
#include "methods/matchcount/text_search.h"
#include "methods/rows/stored_lists.h"
#include "numeric/edit_distance.h"
#include "protocol/search_bound.h"

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

// Returns the largest distance of interest, a whole number; false where no text is that near.
bool read_within(const ParameterList& settings, std::uint32_t* within)
{
    const double bound = within_of(settings);
    *within = bound < no_edit_limit ? static_cast<std::uint32_t>(std::max(bound, 0.0)) : no_edit_limit;
    return bound >= 0;
}

// Workspaces that searches share, one after the other.
class Workspaces
{
public:
    CountWorkspace take()
    {
        const std::lock_guard lock(mutex_);
        if (free_.empty()) return CountWorkspace();
        CountWorkspace taken = std::move(free_.back());
        free_.pop_back();
        return taken;
    }
    void give_back(CountWorkspace workspace)
    {
        const std::lock_guard lock(mutex_);
        free_.push_back(std::move(workspace));
    }

private:
    std::mutex mutex_;
    std::vector<CountWorkspace> free_;
};

class TextSearcher : public Searcher
{
public:
    TextSearcher(const IndexShape& shape, const ParameterList& options, std::span<const ArrayShape> arrays)
        : form_(gram_form(options)), stored_(std::in_place, shape, arrays)
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

    bool compares_rows() const override { return true; }
    void compare_rows(const RowView& query, const RowView& rows, std::span<double> out) const override
    {
        const OwnedPattern pattern(view_text(query.list(0)));
        for (std::size_t i = 0; i < rows.count; ++i) out[i] = pattern.distance(view_text(rows.list(i)));
    }

    void search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results, ThreadPool& pool) const override
    {
        results.assign(batch.count, {});
        const Dead::Use dead = dead_places(batch);
        if (batch.count < pool.threads()) {
            for (std::size_t q = 0; q < batch.count; ++q) results[q] = find(query_of(batch, q, *dead), pool);
            return;
        }
        for_queries(batch, pool, [&](std::size_t q) { results[q] = find(query_of(batch, q, *dead), caller_alone()); });
    }
    void search_exact(const SearchBatch& batch, double after_distance, std::uint32_t after_row,
                      std::vector<RowResult>& results, ThreadPool& pool) const override
    {
        const Dead::Use dead = dead_places(batch);
        TextQuery query = query_of(batch, 0, *dead);
        query.after = {after_distance, after_row};
        results = find(query, pool);
    }
    double search_cost(const SearchBatch& batch) const override
    {
        return 2.0 * static_cast<double>(batch.count) * static_cast<double>(index_->texts.texts().word_count());
    }
    ParameterList resolved_settings(const SearchBatch&) const override { return {}; }

private:
    using Dead = OfBitmap<std::vector<std::uint64_t>>;

    Dead::Use dead_places(const SearchBatch& batch) const
    {
        return dead_.get(batch.dead_version, [&] { return index_->texts.bitmap_of_places(batch.dead); });
    }
    static TextQuery query_of(const SearchBatch& batch, std::size_t query, RowBitmap dead)
    {
        TextQuery wanted;
        wanted.text = view_text(batch.lists.list(query));
        wanted.k = read_within(batch.settings, &wanted.within) ? batch.k : 0;
        wanted.dead = dead;
        wanted.cancel = batch.cancel;
        return wanted;
    }
    std::vector<RowResult> find(const TextQuery& query, ThreadPool& pool) const
    {
        CountWorkspace workspace = workspaces_.take();
        std::vector<RowResult> found = search_texts(*index_, query, workspace, pool);
        workspaces_.give_back(std::move(workspace));
        return found;
    }

    GramForm form_;
    std::uint64_t expected_bytes_ = 0;   // of the lists to come
    std::optional<StoredLists> stored_;  // until they are loaded
    std::optional<TextIndex> index_;     // afterwards
    mutable Dead dead_;
    mutable Workspaces workspaces_;
};

}  // namespace

std::unique_ptr<Searcher> make_searcher(const IndexShape& shape, const ParameterList& options,
                                        std::span<const ArrayShape> arrays)
{
    return std::make_unique<TextSearcher>(shape, options, arrays);
}

}  // namespace pgwarp::matchcount
