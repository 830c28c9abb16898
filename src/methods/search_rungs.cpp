// Defaults of Searcher: the searches of several rungs, one after the other.
#include "methods/method.h"

namespace pgwarp
{

void Searcher::search_rungs(const SearchBatch& batch, std::span<const SearchRung> rungs, RungResults& results,
                            ThreadPool& pool) const
{
    results.resize(rungs.size());
    for (std::size_t rung = 0; rung < rungs.size(); ++rung) {
        SearchBatch own = batch;
        own.k = rungs[rung].k;
        own.effort = rungs[rung].effort;
        search(own, results[rung], pool);
    }
}

void Searcher::compare_rows(const RowView&, const RowView&, std::span<double>) const
{
    throw BadRequest("this index method compares rows by their metric");
}

}  // namespace pgwarp
