#include "overlap_method/overlap.h"

#include "methods/ordered_scan.h"
#include "methods/rows/stored_lists.h"

namespace pgwarp::test
{

namespace
{

double weight_of(const RowView& rows, std::uint64_t at)
{
    return rows.weights == nullptr ? 1.0 : rows.weights[at];
}

// Stores the lists as they come: their order by row is all that a merge needs.
class OverlapBuilder : public Builder
{
public:
    void run(RowBuffer& rows, const BuildProgress& progress, ThreadPool&) override
    {
        progress.report("taking lists", rows.size(), rows.size());
        rows_ = rows.rows();
    }
    std::vector<ArrayShape> arrays() const override { return list_arrays(rows_); }
    void read(const std::string& array, std::uint64_t offset, std::span<std::byte> out) const override
    {
        if (!read_list_array(rows_, array, offset, out)) throw BadRequest("unknown array of lists");
    }
    Calibration calibration() const override { return {}; }
    ParameterList effective_options() const override { return {}; }

private:
    RowView rows_;
};

// Inverts the lists when it has them: the rows of each word, in order.
class OverlapSearcher : public Searcher
{
public:
    OverlapSearcher(const IndexShape& shape, std::span<const ArrayShape> arrays) : lists_(shape, arrays) {}

    void write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes) override
    {
        if (!lists_.write(array, offset, bytes)) throw BadRequest("unknown array of lists");
    }
    void finish_load(ThreadPool&) override
    {
        lists_.finish_load();
        const RowView rows = lists_.rows();
        for (std::uint32_t row = 0; row < rows.count; ++row) {
            for (std::uint64_t at = rows.offsets[row]; at < rows.offsets[row + 1]; ++at)
                postings_.push_back({rows.words[at], row, weight_of(rows, at)});
        }
        std::sort(postings_.begin(), postings_.end(), [](const Posting& a, const Posting& b) {
            return a.word != b.word ? a.word < b.word : a.row < b.row;
        });
    }
    std::uint64_t memory_bytes() const override { return lists_.memory_bytes() + postings_.size() * sizeof(Posting); }
    ResultKind result_kind() const override { return ResultKind::exact; }

    void search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results, ThreadPool& pool) const override
    {
        for (std::size_t i = 0; i < batch.count; ++i)
            results[i] = first_behind(batch, i, -std::numeric_limits<double>::infinity(), 0, pool);
    }
    void search_exact(const SearchBatch& batch, double after_distance, std::uint32_t after_row,
                      std::vector<RowResult>& results, ThreadPool& pool) const override
    {
        results = first_behind(batch, 0, after_distance, after_row, pool);
    }
    bool compares_rows() const override { return true; }
    void compare_rows(const RowView& query, const RowView& rows, std::span<double> out) const override
    {
        for (std::size_t i = 0; i < rows.count; ++i) out[i] = overlap_distance(query, 0, rows, i);
    }
    double search_cost(const SearchBatch& batch) const override
    {
        return static_cast<double>(batch.count * (lists_.rows().count + postings_.size()));
    }
    ParameterList resolved_settings(const SearchBatch&) const override { return {}; }

private:
    struct Posting {
        std::uint32_t word;
        std::uint32_t row;
        double weight;
    };

    // For each row, the number of words in common with a query, or the sum of the products of their weights.
    std::vector<double> count_common(const RowView& query) const
    {
        std::vector<double> common(lists_.rows().count, 0.0);
        for (std::uint64_t at = query.offsets[0]; at < query.offsets[1]; ++at) {
            const std::uint32_t word = query.words[at];
            auto posting = std::lower_bound(postings_.begin(), postings_.end(), word,
                                            [](const Posting& a, std::uint32_t wanted) { return a.word < wanted; });
            for (; posting != postings_.end() && posting->word == word; ++posting)
                common[posting->row] += weight_of(query, at) * posting->weight;
        }
        return common;
    }
    std::vector<RowResult> first_behind(const SearchBatch& batch, std::size_t query, double after_distance,
                                        std::uint32_t after_row, ThreadPool& pool) const
    {
        const std::vector<double> common = count_common(batch.lists.row(query));
        return scan_in_order(
            common.size(), batch, after_distance, after_row, row_itself,
            [&common](std::size_t row) { return -common[row]; }, pool);
    }

    StoredLists lists_;
    std::vector<Posting> postings_;  // by word, then row
};

std::unique_ptr<Builder> make_builder(const IndexShape&, const ParameterList&)
{
    return std::make_unique<OverlapBuilder>();
}

std::unique_ptr<Searcher> make_searcher(const IndexShape& shape, const ParameterList&,
                                        std::span<const ArrayShape> arrays)
{
    return std::make_unique<OverlapSearcher>(shape, arrays);
}

ParameterList part_options(const IndexShape&, const ParameterList& options, const ArrayShape*)
{
    return options;
}

}  // namespace

double overlap_distance(const RowView& a, std::size_t i, const RowView& b, std::size_t j)
{
    double common = 0;
    std::uint64_t in_b = b.offsets[j];
    for (std::uint64_t in_a = a.offsets[i]; in_a < a.offsets[i + 1]; ++in_a) {
        while (in_b < b.offsets[j + 1] && b.words[in_b] < a.words[in_a]) ++in_b;
        if (in_b < b.offsets[j + 1] && b.words[in_b] == a.words[in_a])
            common += weight_of(a, in_a) * weight_of(b, in_b);
    }
    return -common;
}

const MethodFactory& overlap_factory()
{
    static const MethodFactory factory = [] {
        MethodFactory method{};
        method.method = overlap_method;
        method.make_builder = make_builder;
        method.make_searcher = make_searcher;
        method.make_merge_builder = make_builder;
        method.part_options = part_options;
        return method;
    }();
    return factory;
}

}  // namespace pgwarp::test
