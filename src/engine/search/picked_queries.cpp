#include "engine/search/picked_queries.h"

namespace pgwarp
{

SearchBatch pick(const SearchBatch& batch, std::span<const std::uint32_t> numbers, OwnedRows& memory)
{
    if (numbers.size() == batch.count) return batch;
    const std::size_t width = batch.lists.offsets == nullptr ? batch.queries.size() / batch.count : 0;
    memory.clear();
    for (const std::uint32_t q : numbers)
        memory.append(width > 0 ? dense_rows(batch.queries.data() + q * width, 1, width) : batch.lists.row(q));
    SearchBatch picked = batch;
    picked.count = numbers.size();
    if (width > 0) {
        picked.queries = memory.view().dense();
    } else {
        picked.lists = memory.view();
    }
    return picked;
}

}  // namespace pgwarp
