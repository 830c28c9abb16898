#include "matchcount/text_queries.h"

#include <algorithm>

#include "protocol/search_bound.h"

namespace pgwarp::cuda
{

namespace
{

// The arrays that the host writes are const for kernels.
template <class T>
T* writable(const T* array)
{
    return const_cast<T*>(array);
}

}  // namespace

std::uint32_t reach_of(const SearchBatch& batch, std::uint32_t number)
{
    double reach = within_of(batch.settings);
    if (!batch.reach.empty()) reach = std::min(reach, batch.reach[number]);
    return reach < everything ? static_cast<std::uint32_t>(std::max(reach, 0.0)) : everything;
}

TextQueries lay_out_sent(const TextPlan& plan, Carver& memory)
{
    TextQueries queries;
    queries.count = plan.count;
    queries.k = plan.k;
    queries.capacity = plan.capacity();
    queries.stride = plan.stride();
    queries.near_texts = plan.near_texts();
    const std::size_t characters = std::size_t{queries.count} * queries.stride;
    queries.lengths = memory.take<std::uint32_t>(queries.count);
    queries.reach = memory.take<std::uint32_t>(queries.count);
    queries.first_keys = memory.take<std::uint64_t>(queries.count);
    queries.ids = memory.take<std::uint8_t>(characters);
    if (plan.wide) queries.wide = memory.take<std::uint32_t>(characters);
    return queries;
}

void lay_out_search(const TextPlan& plan, Carver& memory, TextQueries& queries)
{
    const std::size_t count = plan.count;
    queries.rest = memory.take<std::uint32_t>(count);
    queries.near = memory.take<std::uint32_t>(count);
    queries.windows = memory.take<std::uint32_t>(count);
    queries.limits = memory.take<std::uint32_t>(count);
    queries.last_keys = memory.take<std::uint64_t>(count);
    queries.found = memory.take<std::uint32_t>(count);
    queries.keys = memory.take<std::uint64_t>(count * plan.capacity());
    queries.of_distance = memory.take<std::uint32_t>(count * TextQueries::distances);
    queries.of_bound = memory.take<std::uint32_t>(count * TextQueries::bounds);
}

void lay_out_read(const TextPlan& plan, Carver& memory, TextQueries& queries)
{
    queries.rest = memory.take<std::uint32_t>(plan.count);
    queries.near = memory.take<std::uint32_t>(plan.count);
    queries.limits = memory.take<std::uint32_t>(plan.count);
}

void write_queries(const TextPlan& plan, const SearchBatch& batch, const TextAlphabet& alphabet,
                   const TextQueries& host)
{
    for (std::size_t i = 0; i < plan.count; ++i) {
        const TextView text = view_text(batch.lists.list(plan.numbers[i]));
        writable(host.lengths)[i] = text.length;
        writable(host.reach)[i] = reach_of(batch, plan.numbers[i]);
        writable(host.first_keys)[i] = plan.first_key;
        std::uint8_t* const ids = writable(host.ids) + i * host.stride;
        for (std::uint32_t at = 0; at < text.length; ++at) ids[at] = alphabet.id(text[at]);
        if (host.wide == nullptr) continue;
        std::uint32_t* const wide = writable(host.wide) + i * host.stride;
        for (std::uint32_t at = 0; at < text.length; ++at) wide[at] = text[at];
    }
}

}  // namespace pgwarp::cuda
