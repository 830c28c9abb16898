// Reads sampled sets and takes the quartiles of their similarities.
#include "postgres/functions/standing_out.h"

#include <algorithm>

#include "protocol/part_rows.h"
#include "protocol/standing_out.h"

namespace pgwarp
{

SampledSets read_sampled_sets(const SearchTarget* target, const ItemPointerData* tids, uint32 count)
{
    SampledSets sample = {};
    sample.count = Min(count, most_sampled_sets);
    sample.rows = static_cast<RowView*>(palloc(sizeof(RowView) * Max(sample.count, 1U)));
    sample.similarities = static_cast<double*>(palloc(sizeof(double) * Max(sample.count, 1U)));
    for (uint32 i = 0; i < sample.count; ++i) {
        CHECK_FOR_INTERRUPTS();
        sample.rows[i] = fetch_row_query(target->reader, tids[i]);
    }
    return sample;
}

double standing_out_distance(const SampledSets& sample, const RowView& query, double functions)
{
    double* const similarities = sample.similarities;
    const std::span<const uint32> asked = query.list(0);
    for (uint32 i = 0; i < sample.count; ++i) {
        const std::span<const uint32> row = sample.rows[i].list(0);
        const uint32 common = count_common(asked, row);
        similarities[i] = 1 - jaccard_distance_of_sets(common, asked.size() / set_words, row.size() / set_words);
    }
    std::sort(similarities, similarities + sample.count);
    const uint32 quarter = sample.count / 4;
    return 1 - standing_out_similarity(similarities[quarter], similarities[sample.count - 1 - quarter], functions);
}

}  // namespace pgwarp
