// Defaults of Searcher: the searches of several rungs, one after the other.
#include "methods/method.h"

namespace pgwarp
{

std::vector<SearchBatch> batches_of(const SearchBatch& batch, std::span<const SearchRung> rungs)
{
    std::vector<SearchBatch> batches(rungs.size(), batch);
    for (std::size_t rung = 0; rung < rungs.size(); ++rung) {
        batches[rung].k = rungs[rung].k;
        batches[rung].effort = rungs[rung].effort;
    }
    return batches;
}

void Searcher::search_rungs(const SearchBatch& batch, std::span<const SearchRung> rungs, RungResults& results,
                            ThreadPool& pool) const
{
    results.resize(rungs.size());
    std::size_t rung = 0;
    for (const SearchBatch& own : batches_of(batch, rungs)) search(own, results[rung++], pool);
}

void Searcher::search_among(const SearchBatch&, std::span<const RowList>, const RowResult&,
                            std::vector<std::vector<RowResult>>&, ThreadPool&) const
{
    throw BadRequest("this index method does not compare certain rows alone");
}

void Searcher::compare_rows(const RowView&, const RowView&, std::span<double>) const
{
    throw BadRequest("this index method compares rows by their metric");
}

}  // namespace pgwarp
